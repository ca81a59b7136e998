import { describe, expect, it } from 'vitest';
import { JsonDocument } from '../common/json/json-document.js';
import type { Consumer } from '../contracts/consumer.js';
import { IssuedIds } from './issued-ids.js';

const consumer = (id: string): Consumer => ({ id }) as Consumer;
const [red, blue] = [consumer('red'), consumer('blue')];
const A = { upstream: 'a', key: null };

function knows(issued: IssuedIds, id: string, who: Consumer): boolean {
  const body = JsonDocument.parse(Buffer.from(JSON.stringify({ previous_response_id: id })));
  try {
    return issued.pinnedUpstream(body, who, true) !== null;
  } catch {
    return false;
  }
}

describe('the limit of IssuedIds', () => {
  it('forgets the least recently used beyond its limit', () => {
    const issued = new IssuedIds(3);
    for (const id of ['1', '2', '3']) issued.learn([id], red, A);
    expect(knows(issued, '1', red)).toBe(true);
    issued.learn(['4'], red, A);
    expect(issued.size).toBe(3);
    expect(['1', '2', '3', '4'].map((id) => knows(issued, id, red))).toEqual([true, false, true, true]);
  });

  it.each([3, 2000])('lets nobody push out what others were issued: limit %i', (limit) => {
    const issued = new IssuedIds(limit);
    issued.learn(['resp_red'], red, A);
    issued.learn(
      Array.from({ length: limit * 2 }, (_, i) => `blue_${i}`),
      blue,
      A,
    );
    for (let i = 0; i < limit * 2; i++) issued.learn([`more_${i}`], blue, A);
    expect(issued.size).toBeLessThanOrEqual(limit);
    expect(knows(issued, 'resp_red', red)).toBe(true);
    expect(knows(issued, `more_${limit * 2 - 1}`, blue)).toBe(true);
    expect(knows(issued, 'blue_1', blue)).toBe(false);
  });

  it('shares the room where it is wanted by many', () => {
    const issued = new IssuedIds(100);
    const all = Array.from({ length: 10 }, (_, i) => consumer(`c${i}`));
    for (let i = 0; i < 50; i++) for (const one of all) issued.learn([`${one.id}-${i}`], one, A);
    const kept = all.map(
      (one) =>
        Array.from({ length: 50 }, (_, i) => i).filter((i) => knows(issued, `${one.id}-${i}`, one)).length,
    );
    for (const count of kept) expect(Math.abs(count - 10)).toBeLessThanOrEqual(1);
  });
});
