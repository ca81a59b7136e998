import { describe, expect, it } from 'vitest';
import { SlotPool } from './slot-pool.js';

describe('SlotPool', () => {
  it('gives out as many slots as its limit and no more', () => {
    const pool = new SlotPool(2);
    expect([pool.claim(), pool.claim(), pool.claim()]).toEqual([true, true, false]);
    expect(pool.active).toBe(2);
    expect(pool.free).toBe(false);
    pool.release();
    expect(pool.claim()).toBe(true);
  });

  it('never refuses without a limit', () => {
    const pool = new SlotPool(Infinity);
    for (let i = 0; i < 1000; i++) expect(pool.claim()).toBe(true);
    expect(String(pool)).toBe('1000/∞');
  });

  it('refuses to go below zero', () => {
    const pool = new SlotPool(4);
    expect(() => pool.release()).toThrow();
    expect(pool.active).toBe(0);
  });

  it('prints as the log shows it', () => {
    const pool = new SlotPool(4);
    pool.claim();
    expect(String(pool)).toBe('1/4');
  });
});
