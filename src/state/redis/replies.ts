import type { RestState, StoreEvent } from '../shared-types.js';

type Reply = string | number | null | readonly Reply[];

/** `{ streak, number, whole ms, ms left, quiet ms left, after a trial 0/1 }`, as the scripts give it. */
export function restStateOf(name: string, reply: Reply): RestState {
  const at = (index: number) => (Array.isArray(reply) ? Number(reply[index] ?? 0) : 0);
  return {
    name,
    streak: at(0),
    number: at(1),
    totalMs: at(2),
    leftMs: at(3),
    quietMs: at(4),
    afterTrial: at(5) === 1,
  };
}

/** An event of the channel; null for what this replica said itself and does not need to hear, and for strangers' words. */
export function eventOf(text: string, self: string): StoreEvent | null {
  let said: Record<string, unknown>;
  try {
    said = JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
  const { k, n, p, r } = said;
  switch (said['t']) {
    case 'wake':
      return { kind: 'wake', pool: String(p), inMs: Number(said['s']) };
    case 'rest': {
      const state: RestState = {
        name: String(k),
        streak: Number(n),
        number: Number(said['no']),
        totalMs: Number(said['total']),
        leftMs: Number(said['left']),
        quietMs: Number(said['quiet']),
        afterTrial: said['trial'] === true,
      };
      return { kind: 'rest', state };
    }
    case 'replicas':
      return { kind: 'replicas', count: Number(n) };
    case 'gone':
      return r === self ? null : { kind: 'gone', replica: String(r) };
    case 'excess':
      return r === self
        ? null
        : { kind: 'excess', replica: String(r), pool: String(p), slots: Number(said['n']) };
    case 'roll':
      return r === self ? null : { kind: 'roll' };
    default:
      return null;
  }
}
