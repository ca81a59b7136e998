import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OutageShare } from './outage-share.js';
import { SlidingWindow } from './window/sliding-window.js';

const windowOf = () => new SlidingWindow(1000, [], 0);

describe('OutageShare', () => {
  it('is an even part of what is left, rounded down', () => {
    const share = new OutageShare(windowOf(), { own: 2, all: 3 }, 3);
    expect(share.remaining(11, 2, 0)).toBe(2);
    share.used.book(1, 0);
    expect(share.remaining(11, 2, 0)).toBe(1);
    // What was reserved at the loss, and used less, is its own.
    expect(share.remaining(11, 0, 0)).toBe(3);
  });

  it('is nothing where nobody is known, whatever ends', () => {
    const share = new OutageShare(windowOf(), { own: 5, all: 5 }, 0);
    expect(share.remaining(100, 0, 0)).toBe(0);
  });

  it('is with the others never more than is left, whatever each reserves and uses', () => {
    const replica = fc.record({ held: fc.nat(20), settled: fc.nat(20), used: fc.nat(20), more: fc.nat(20) });
    fc.assert(
      fc.property(
        fc.array(replica, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: -20, max: 100 }),
        (replicas, room) => {
          const all = replicas.reduce((sum, { held }) => sum + held, 0);
          let shares = 0;
          let left = room - all;
          for (const { held, more, settled, used } of replicas) {
            const share = new OutageShare(windowOf(), { own: held, all }, replicas.length);
            share.used.book(used, 0);
            const reserved = held - Math.min(held, settled) + more;
            shares += share.remaining(room, reserved, 0);
            left -= used + reserved - held;
          }
          expect(shares).toBeLessThanOrEqual(left);
        },
      ),
    );
  });
});
