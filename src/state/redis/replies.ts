import type { RestState, StoreEvent } from '../shared-types.js';

export type Reply = string | number | null | readonly Reply[];

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
    case 'held':
      return r === self ? null : { kind: 'held', fact: String(k), leftMs: Number(said['left']) };
    case 'counted':
      if (r === self) return null;
      return { kind: 'counted', sum: String(k), part: Number(p), amount: Number(n) };
    case 'reserved':
      if (r === self) return null;
      return { kind: 'reserved', sum: String(k), replica: String(r), tokens: Number(n) };
    case 'mark':
      return { kind: 'mark', number: Number(n) };
    case 'told':
      if (r === self) return null;
      return { kind: 'told', replica: String(r), topic: String(k), text: String(said['x']) };
    case 'roll':
      return r === self ? null : { kind: 'roll' };
    default:
      return null;
  }
}

/** The number at this place of a list; 0 where there is none. */
export function numberOf(reply: Reply, index: number): number {
  return Array.isArray(reply) ? Number(reply[index] ?? 0) : 0;
}

/** `replica|pool`, slots, and so on. */
export function excessesOf(fields: readonly string[]): { replica: string; pool: string; slots: number }[] {
  const excesses = [];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const field = fields[i] as string;
    const bar = field.indexOf('|');
    excesses.push({
      replica: field.slice(0, bar),
      pool: field.slice(bar + 1),
      slots: Number(fields[i + 1]),
    });
  }
  return excesses;
}
