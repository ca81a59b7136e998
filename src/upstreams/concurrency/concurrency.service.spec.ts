import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { claimsWith } from '../../../test/support/slot-rooms.js';
import { loadConfig } from '../../config/loader/load-config.js';
import type { UpstreamConfig } from '../../config/gateway-config.js';
import { BackoffService } from '../backoff/backoff.service.js';
import type { Lease } from '../lease.js';
import { ProviderClient } from '../provider-client.js';
import { Upstream } from '../upstream.js';
import type { Gate } from '../../contracts/gate.js';
import type { Claimable } from './concurrency.service.js';

class ManualClock {
  time = 1000;
  now(): number {
    return this.time;
  }
}

function upstreamsOf(
  limits: readonly (number | null)[],
  backoffs: readonly (string | null)[] = [],
  provider: object = {},
): Upstream[] {
  const ids = limits.map((_, i) => `u${i}`);
  const text = JSON.stringify({
    providers: [{ id: 'p', url: 'http://127.0.0.1:9/v1', ...provider }],
    upstreams: limits.map((limit, i) => ({
      id: `u${i}`,
      provider: 'p',
      model: 'm',
      max_concurrency: limit,
      ...(backoffs[i] ? { backoff: backoffs[i] } : {}),
    })),
    models: [{ name: 'm', upstreams: ids }],
  });
  const result = loadConfig({ text }, {});
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  const counters = new BackoffService();
  const make = (config: UpstreamConfig) =>
    new Upstream(config, new ProviderClient(config.provider), counters.counterFor(config));
  return result.config.upstreams.map(make);
}

const claimable = (upstream: Upstream): Claimable => ({
  upstream,
  gates: null,
  entry: { tier: 1, spill: null },
});

describe('ConcurrencyService', () => {
  it('passes by a candidate that a gate closes, without touching its slots', () => {
    const service = claimsWith(new ManualClock());
    let closedMs = 500;
    const gate = { reason: 'quota' as const, closedMs: () => closedMs };
    const [a, b] = upstreamsOf([1, 1]) as [Upstream, Upstream];
    const candidates: Claimable[] = [
      { upstream: a, gates: [gate], entry: { tier: 1, spill: null } },
      claimable(b),
    ];
    expect(service.claim(candidates, null)?.candidate.upstream).toBe(b);
    expect(a.slots.active).toBe(0);
    closedMs = 0;
    expect(service.claim(candidates, null)?.candidate.upstream).toBe(a);
  });

  describe('says why nothing could be claimed where gates are closed', () => {
    const closed = (closedMs: number, reason: 'quota' | 'no_key' = 'quota') => ({
      reason,
      closedMs: () => closedMs,
    });
    const open = closed(0);
    const refusalOf = (...gates: (readonly Gate[] | null)[]) => {
      const clock = new ManualClock();
      const upstreams = upstreamsOf(
        gates.map(() => 1),
        gates.map(() => 'PT10S'),
      );
      const candidates = upstreams.map((upstream, i): Claimable => ({
        ...claimable(upstream),
        gates: gates[i] ?? null,
      }));
      return { candidates, clock, refusal: () => claimsWith(clock).refusal(candidates) };
    };

    it('all by quotas: of one candidate the latest counts, over the candidates the soonest', () => {
      expect(refusalOf([closed(500), closed(9000)], [closed(7000), open]).refusal()).toEqual({
        someAlive: false,
        soonestMs: 7000,
        allClosedBy: 'quota',
      });
    });

    it('one is open, and therefore full', () => {
      expect(refusalOf([closed(500)], [open]).refusal()).toMatchObject({
        someAlive: true,
        allClosedBy: null,
      });
      expect(refusalOf([closed(500)], null).refusal()).toMatchObject({ someAlive: true, allClosedBy: null });
    });

    it.each([
      [8000, 8000],
      [60_000, 10_000],
    ])('mixed with resting ones: the sooner time (quota %d)', (quotaMs, soonestMs) => {
      const { candidates, clock, refusal } = refusalOf([closed(quotaMs)], null);
      candidates[1]?.upstream.backoff?.failed(clock.now(), clock.now(), 10_000);
      expect(refusal()).toEqual({ someAlive: false, soonestMs, allClosedBy: null });
    });

    it('keys that rest beside a quota: the sooner time, and no single reason', () => {
      const keys = { reason: 'cooling' as const, closedMs: () => 5000 };
      expect(refusalOf([keys], [closed(2000)]).refusal()).toEqual({
        someAlive: false,
        soonestMs: 2000,
        allClosedBy: null,
      });
      expect(refusalOf([keys, closed(2000)]).refusal()).toEqual({
        someAlive: false,
        soonestMs: 5000,
        allClosedBy: 'quota',
      });
    });

    it('one that rests and is closed opens when both are over', () => {
      const { candidates, clock, refusal } = refusalOf([closed(2000)]);
      candidates[0]?.upstream.backoff?.failed(clock.now(), clock.now(), 10_000);
      expect(refusal()).toEqual({ someAlive: false, soonestMs: 10_000, allClosedBy: 'quota' });
    });

    it('what never opens by itself does not hide what does', () => {
      expect(refusalOf([closed(Infinity, 'no_key')], [closed(300)]).refusal()).toEqual({
        someAlive: false,
        soonestMs: 300,
        allClosedBy: 'quota',
      });
      expect(refusalOf([closed(Infinity, 'no_key')]).refusal()).toEqual({
        someAlive: false,
        soonestMs: Infinity,
        allClosedBy: null,
      });
    });
  });

  it('takes the first candidate that is alive, free and not tried, in order', () => {
    const clock = new ManualClock();
    const service = claimsWith(clock);
    const candidates: Claimable[] = upstreamsOf([1, 1, 1], [null, 'PT10S', null]).map(claimable);
    expect(service.claim(candidates, null)?.candidate).toBe(candidates[0]);
    candidates[1]?.upstream.backoff?.failed(clock.now(), clock.now());
    expect(service.claim(candidates, null)?.candidate).toBe(candidates[2]);
    expect(service.claim(candidates, null)).toBeNull();
    clock.time += 1000;
    expect(service.claim(candidates, new Set([(candidates[1] as Claimable).upstream]))).toBeNull();
    const claim = service.claim(candidates, null);
    expect(claim?.candidate).toBe(candidates[1]);
    expect(claim?.lease.startedAt).toBe(2000);
  });

  it('says when a resting one may be tried, and a second where a trial is under way', () => {
    const clock = new ManualClock();
    const service = claimsWith(clock);
    const [upstream] = upstreamsOf([1], ['PT1H'], { recovery: 'half_open' }) as [Upstream];
    const candidates = [claimable(upstream)];
    upstream.backoff?.failed(1000, 1000, 6000);
    clock.time = 7500;
    upstream.backoff?.failed(7500, 7200, 0, true);
    expect(service.refusal(candidates)).toMatchObject({ someAlive: false, soonestMs: 3000 });
    clock.time = 10_500;
    expect(service.refusal(candidates)).toMatchObject({ someAlive: false, soonestMs: 1000 });
    const claim = service.claim(candidates, null);
    expect(claim?.lease.trial).toBe(true);
    expect(service.claim(candidates, null)).toBeNull();
    clock.time = 13_000;
    expect(service.refusal(candidates)).toMatchObject({ someAlive: false, soonestMs: 500 });
    claim?.lease.release();
    claim?.lease.release();
    expect(service.claim(candidates, null)?.lease.trial).toBe(true);
  });

  it('tries nothing that a gate closes, however well it might be', () => {
    const clock = new ManualClock();
    const service = claimsWith(clock);
    const [upstream] = upstreamsOf([1], ['PT1H'], { recovery: 'half_open' }) as [Upstream];
    const gate = { reason: 'quota' as const, closedMs: () => 9000 };
    upstream.backoff?.failed(1000, 1000);
    clock.time = 1900;
    const closed = [{ ...claimable(upstream), gates: [gate] }];
    expect(service.claim(closed, null)).toBeNull();
    expect(service.refusal(closed).soonestMs).toBe(9000);
    expect([upstream.backoff?.trials, upstream.slots.active]).toEqual([0, 0]);
    expect(service.claim([claimable(upstream)], null)?.lease.trial).toBe(true);
  });

  it('says why nothing was free: full ones are alive, of the resting ones the soonest counts', () => {
    const clock = new ManualClock();
    const service = claimsWith(clock);
    const candidates = upstreamsOf([1, 1], ['PT10S', 'PT10S']).map(claimable);
    const [first, second] = candidates as [Claimable, Claimable];
    first.upstream.backoff?.failed(1000, 1000, 8000);
    expect(service.refusal(candidates)).toEqual({ someAlive: true, soonestMs: 8000, allClosedBy: null });
    second.upstream.backoff?.failed(1000, 1000, 3000);
    expect(service.refusal(candidates)).toEqual({ someAlive: false, soonestMs: 3000, allClosedBy: null });
    clock.time = 4000;
    expect(service.refusal(candidates).someAlive).toBe(true);
  });

  it('never goes above a limit or below zero, and ends at zero, whatever happens in whatever order', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('claim' as const), tried: fc.subarray([0, 1, 2, 3]) }),
      fc.record({ kind: fc.constant('release' as const), which: fc.nat() }),
      fc.record({ kind: fc.constant('again' as const), which: fc.nat() }),
      fc.record({ kind: fc.constant('fail' as const), which: fc.nat() }),
      fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 3000 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        const clock = new ManualClock();
        const service = claimsWith(clock);
        const candidates = upstreamsOf([1, 4, null, 2], ['PT2S', null, 'PT5S', null]).map(claimable);
        const held: Lease[] = [];
        const released: Lease[] = [];
        const letGo = (lease: Lease | undefined) => {
          if (lease === undefined) return;
          lease.release();
          released.push(lease);
        };
        for (const one of steps) {
          if (one.kind === 'claim') {
            const tried = new Set(one.tried.map((i) => (candidates[i] as Claimable).upstream));
            const claim = service.claim(candidates, tried);
            if (claim !== null) {
              expect(tried.has(claim.candidate.upstream)).toBe(false);
              expect(claim.candidate.upstream.restingMs(clock.now())).toBe(0);
              held.push(claim.lease);
            }
          } else if (one.kind === 'release' || one.kind === 'fail') {
            const [lease] = held.length === 0 ? [] : held.splice(one.which % held.length, 1);
            if (one.kind === 'fail' && lease) lease.upstream.backoff?.failed(clock.now(), lease.startedAt);
            letGo(lease);
          } else if (one.kind === 'again') {
            // Whoever asks twice takes nobody else's slot away.
            if (released.length > 0) released[one.which % released.length]?.release();
          } else clock.time += one.ms;
          for (const { upstream } of candidates) {
            const mine = held.filter((lease) => lease.upstream === upstream).length;
            expect(upstream.slots.active).toBe(mine);
            expect(upstream.slots.active).toBeLessThanOrEqual(upstream.config.limit);
          }
        }
        for (const lease of held) letGo(lease);
        for (const { upstream } of candidates) expect(upstream.slots.active).toBe(0);
      }),
    );
  });
});
