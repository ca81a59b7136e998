import type {
  ReserveAnswer,
  Sum,
  SumAsk,
  SumChange,
  SumState,
  SumStates,
  SumWindow,
} from '../shared-sums.js';
import { numberOf, type Reply } from './replies.js';

/** As the scripts are told of a sum. */
export function toldSum({ name, window }: Sum): {
  readonly n: string;
  readonly w: readonly (string | number)[];
} {
  return { n: name, w: toldWindow(window) };
}

function toldWindow(window: SumWindow): readonly (string | number)[] {
  if (window.kind === 'month') return ['m'];
  return window.kind === 'sliding' ? ['s', window.lengthMs] : ['c', window.lengthMs, window.offsetMs];
}

/** Null: the store knows nothing of what this replica has told. */
export function reserveAnswerOf(reply: Reply): ReserveAnswer | null {
  const [kind, ...numbers] = Array.isArray(reply) ? reply.map(Number) : [];
  if (kind === 1) return { kind: 'granted', parts: numbers };
  if (kind === 2) return { kind: 'held back', ms: numbers[0] ?? 0 };
  if (kind !== 0) return null;
  const closed = [];
  for (let i = 0; i + 1 < numbers.length; i += 2)
    closed.push({ ask: (numbers[i] as number) - 1, ms: numbers[i + 1] as number });
  return { kind: 'used up', closed };
}

export function undone(asks: readonly SumAsk[], parts: readonly number[]): SumChange[] {
  return asks.map(({ reserved, sum, used }, i) => ({
    sum,
    part: parts[i] ?? null,
    used: used === 0 ? 0 : -used,
    reserved: reserved === 0 ? 0 : -reserved,
  }));
}

export function sumStatesOf(reply: Reply, count: number): SumStates {
  const lists = Array.isArray(reply) ? reply.slice(2) : [];
  const states = Array.from({ length: count }, (_, i): SumState => {
    const parts = new Map<number, number>();
    for (const [part, amount] of pairsOf(lists[2 * i])) parts.set(Number(part), Number(amount));
    const reserved = new Map<string, number>();
    for (const [replica, tokens] of pairsOf(lists[2 * i + 1])) reserved.set(String(replica), Number(tokens));
    return { parts, reserved };
  });
  return { nowMs: numberOf(reply, 0), heldBackMs: numberOf(reply, 1), states };
}

function pairsOf(list: Reply | undefined): [Reply, Reply][] {
  const pairs: [Reply, Reply][] = [];
  if (!Array.isArray(list)) return pairs;
  for (let i = 0; i + 1 < list.length; i += 2) pairs.push([list[i] as Reply, list[i + 1] as Reply]);
  return pairs;
}
