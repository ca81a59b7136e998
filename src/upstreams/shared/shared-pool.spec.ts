import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SlotPool } from '../concurrency/slot-pool.js';
import { SharedPool } from './shared-pool.js';

/** One replica: takes what its pool gives out. */
function replicaWith(limit: number, held: number) {
  const slots = new SlotPool(limit);
  const pool = new SharedPool('p', slots);
  for (let i = 0; i < held; i++) {
    pool.received();
    slots.claim();
  }
  return { pool, slots };
}

describe('SharedPool', () => {
  it('gives out nothing but what came from the store, or what it was told to', () => {
    const { pool, slots } = replicaWith(4, 0);
    expect(slots.claim()).toBe(false);
    pool.received();
    expect([slots.claim(), slots.claim()]).toEqual([true, false]);
    pool.gaveBack();
    slots.release();
    expect(slots.free).toBe(false);
  });

  it('keeps what is held for its holder when the store goes, and nothing of one slot for the others', () => {
    const [holder, other] = [replicaWith(1, 1), replicaWith(1, 0)];
    for (const { pool } of [holder, other]) {
      pool.keep();
      pool.share(2);
    }
    holder.slots.release();
    expect([holder.slots.free, other.slots.free]).toEqual([true, false]);
  });

  it('counts the pause after an exchange only while it lives on its share', () => {
    const { pool, slots } = replicaWith(1, 1);
    pool.keep();
    slots.settle(5);
    expect(slots.free).toBe(false);
    slots.settled(5);
    expect(slots.free).toBe(true);
    // In the store the pause is counted there.
    pool.told();
    pool.received();
    expect(slots.claim()).toBe(true);
    pool.received();
    slots.settle(6);
    expect(slots.free).toBe(true);
  });

  it('keeps all replicas together below the limit without a store, however the slots were spread', () => {
    const spread = fc.record({
      limit: fc.integer({ min: 1, max: 24 }),
      wants: fc.array(fc.nat(24), { minLength: 1, maxLength: 6 }),
      order: fc.array(fc.nat(), { minLength: 60, maxLength: 60 }),
    });
    fc.assert(
      fc.property(spread, ({ limit, order, wants }) => {
        let left = limit;
        const replicas = wants.map((want) => {
          const held = Math.min(want, left);
          left -= held;
          return replicaWith(limit, held);
        });
        const share = Math.floor(limit / replicas.length);
        // As the store tells it: how far each is above its even share, while there are shares at all.
        for (const [i, { slots }] of replicas.entries()) {
          const excess = share === 0 ? 0 : Math.max(0, slots.active - share);
          for (const [j, { pool }] of replicas.entries()) if (i !== j) pool.heard(`r${i}`, excess);
        }
        for (const { pool } of replicas) pool.keep();
        for (const { pool } of replicas) pool.share(replicas.length);
        for (const step of order) {
          const { slots } = replicas[step % replicas.length]!;
          if (step % 3 === 0 && slots.active > 0) slots.release();
          else slots.claim();
          expect(replicas.reduce((sum, replica) => sum + replica.slots.active, 0)).toBeLessThanOrEqual(limit);
        }
      }),
    );
  });
});
