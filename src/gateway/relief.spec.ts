import { claimsWith } from '../../test/support/slot-rooms.js';
import { describe, expect, it } from 'vitest';
import type { Candidate } from '../routing/candidate.js';
import { Lease } from '../upstreams/lease.js';
import { SlotPool } from '../upstreams/concurrency/slot-pool.js';
import type { Upstream } from '../upstreams/upstream.js';
import { Relief } from './relief.js';

function upstream(): Upstream {
  return { slots: new SlotPool(1), restingMs: () => 0 } as unknown as Upstream;
}

const candidateOf = (of: Upstream): Candidate => ({ upstream: of, gates: null }) as unknown as Candidate;

function reliefOf(candidates: readonly Candidate[], maxAttempts = Infinity): Relief {
  const service = claimsWith({ now: () => 0 });
  const tried = new Set([candidates[0]?.upstream as Upstream]);
  return new Relief(service, { records: [] }, candidates, tried, maxAttempts);
}

describe('Relief', () => {
  it('claims while the present upstream still has its slot, and once only', () => {
    const [silent, next, further] = [upstream(), upstream(), upstream()] as [Upstream, Upstream, Upstream];
    const lease = new Lease(silent, 0);
    silent.slots.claim();
    const candidates = [silent, next, further].map(candidateOf);
    const relief = reliefOf(candidates);
    expect(relief.take()).toBe(true);
    expect(relief.take()).toBe(true);
    expect([silent, next, further].map(({ slots }) => slots.active)).toEqual([1, 1, 0]);
    const claim = relief.use();
    expect(claim?.candidate.upstream).toBe(next);
    relief.release();
    expect(next.slots.active).toBe(1);
    claim?.lease.release();
    lease.release();
  });

  it('gives back what nobody used', () => {
    const [silent, next] = [upstream(), upstream()] as [Upstream, Upstream];
    const candidates = [silent, next].map(candidateOf);
    const relief = reliefOf(candidates);
    expect(relief.take()).toBe(true);
    relief.release();
    relief.release();
    expect(next.slots.active).toBe(0);
  });

  it('finds nobody where all others are busy or were tried, and asks anew each time', () => {
    const [silent, next] = [upstream(), upstream()] as [Upstream, Upstream];
    const candidates = [silent, next].map(candidateOf);
    const relief = reliefOf(candidates);
    next.slots.claim();
    expect(relief.take()).toBe(false);
    expect(relief.use()).toBeNull();
    next.slots.release();
    expect(relief.take()).toBe(true);
    relief.release();
  });

  it('claims nobody where no further attempt is allowed', () => {
    const [silent, next] = [upstream(), upstream()] as [Upstream, Upstream];
    const relief = reliefOf([silent, next].map(candidateOf), 1);
    expect(relief.take()).toBe(false);
    expect(next.slots.active).toBe(0);
  });
});
