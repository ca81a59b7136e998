import { describe, expect, it } from 'vitest';
import { SlotPool } from './concurrency/slot-pool.js';
import { Lease } from './lease.js';
import type { Upstream } from './upstream.js';

describe('Lease', () => {
  it('gives its slot back exactly once, however often it is asked', () => {
    const slots = new SlotPool(3);
    slots.claim();
    slots.claim();
    const lease = new Lease({ slots, seat: null } as unknown as Upstream, 5);
    expect([lease.held, lease.startedAt]).toEqual([true, 5]);
    for (let i = 0; i < 3; i++) lease.release();
    expect(lease.held).toBe(false);
    expect(slots.active).toBe(1);
  });
});
