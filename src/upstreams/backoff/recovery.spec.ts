import { describe, expect, it } from 'vitest';
import type { UpstreamConfig } from '../../config/gateway-config.js';
import { Backoff } from './backoff.js';
import { Recovery, sendsProbes, trialPlaces } from './recovery.js';

const config = (
  recovery: UpstreamConfig['recovery'],
  wake: 'full' | 'trial' = 'full',
  limit = Infinity,
): UpstreamConfig =>
  ({
    recovery,
    limit,
    probeIntervalMs: 1000,
    probe: { mode: 'get', path: '/', expect: [200], wake },
  }) as unknown as UpstreamConfig;

function setUp(...how: Parameters<typeof config>) {
  const backoff = new Backoff({ capMs: 3_600_000 });
  const recovery = Recovery.of(config(...how), backoff);
  if (recovery === null) throw new Error('it takes no trials');
  return { backoff, recovery };
}

/** Until it rests for four seconds, from 0 on. */
function restOfFour(backoff: Backoff): void {
  for (const now of [-10_000, -5000, 0]) backoff.failed(now, now);
}

describe('trialPlaces', () => {
  it.each([
    [1, 1],
    [10, 1],
    [15, 1],
    [19, 1],
    [20, 2],
    [1000, 2],
    [Infinity, 2],
  ])('a limit of %d gives %d', (limit, places) => {
    expect(trialPlaces(limit)).toBe(places);
  });
});

describe('sendsProbes', () => {
  it('is for probe and both, with an interval', () => {
    const modes = ['probe', 'half_open', 'both', 'timer'] as const;
    expect(modes.filter((mode) => sendsProbes(config(mode)))).toEqual(['probe', 'both']);
    expect(sendsProbes({ ...config('both'), probeIntervalMs: 0 })).toBe(false);
  });
});

describe('Recovery', () => {
  it.each([
    ['probe', 'full', false],
    ['timer', 'full', false],
    ['timer', 'trial', false],
    ['half_open', 'full', true],
    ['both', 'full', true],
    ['probe', 'trial', true],
  ] as const)('with %s and wake: %s there are trials: %s', (mode, wake, there) => {
    expect(Recovery.of(config(mode, wake), new Backoff({ capMs: 1000 })) !== null).toBe(there);
  });

  it('is nothing where nothing rests, and where no probe could permit a trial', () => {
    expect(Recovery.of(config('half_open'), null)).toBeNull();
    const noProbes = { ...config('probe', 'trial'), probeIntervalMs: 0 };
    expect(Recovery.of(noProbes, new Backoff({ capMs: 1000 }))).toBeNull();
  });

  it('opens in the second half of a rest', () => {
    const { backoff, recovery } = setUp('half_open');
    restOfFour(backoff);
    expect([recovery.opensMs(0), recovery.opensMs(1999), recovery.opensMs(2000)]).toEqual([2000, 1, 0]);
    expect([recovery.trialOpen(1999), recovery.trialOpen(2000)]).toEqual([false, true]);
  });

  it('never opens before the Retry-After of the provider has passed', () => {
    const { backoff, recovery } = setUp('half_open');
    restOfFour(backoff);
    backoff.failed(100, -100, 3000);
    expect([recovery.opensMs(2500), recovery.trialOpen(2500), recovery.trialOpen(3100)]).toEqual([
      600,
      false,
      true,
    ]);
    // A rest that is as long as its Retry-After has no time for trials.
    backoff.failed(3100, 3050, 20_000);
    expect(recovery.opensMs(14_000)).toBe(9100);
    // Where the Retry-After is beyond the cap, the rest ends before it.
    const capped = new Backoff({ capMs: 1000 });
    capped.failed(0, 0, 60_000);
    expect(Recovery.of(config('both', 'trial'), capped)?.opensMs(600)).toBe(400);
  });

  it('closes while its places are taken, together with all that share the counter', () => {
    const { backoff, recovery } = setUp('half_open', 'full', 1);
    const other = Recovery.of(config('both'), backoff);
    restOfFour(backoff);
    expect(recovery.takeTrial()).toBe(true);
    expect([recovery.trialOpen(2000), other?.trialOpen(2000)]).toEqual([false, true]);
    expect(other?.takeTrial()).toBe(true);
    expect(other?.trialOpen(2000)).toBe(false);
    recovery.giveBackTrial();
    expect([recovery.trialOpen(2000), other?.trialOpen(2000)]).toEqual([false, true]);
  });

  it('opens at once where a probe permits it, until a probe says otherwise', () => {
    const { backoff, recovery } = setUp('probe', 'trial');
    restOfFour(backoff);
    expect([recovery.opensMs(500), recovery.opensMs(3000)]).toEqual([3500, 1000]);
    recovery.probed(true, backoff.restNumber);
    expect(recovery.opensMs(500)).toBe(0);
    recovery.probed(false, backoff.restNumber);
    expect(recovery.opensMs(500)).toBe(3500);
  });

  it('forgets what a probe said about an earlier rest, also where it says so late', () => {
    const { backoff, recovery } = setUp('probe', 'trial');
    restOfFour(backoff);
    const before = backoff.restNumber;
    recovery.probed(true, before);
    backoff.failed(1000, 900);
    expect(recovery.trialOpen(1000)).toBe(false);
    recovery.probed(true, before);
    expect(recovery.trialOpen(1000)).toBe(false);
  });

  it('is quiet in the first half after a failed trial, whatever a probe says', () => {
    const { backoff, recovery } = setUp('probe', 'trial');
    restOfFour(backoff);
    recovery.probed(true, backoff.restNumber);
    backoff.failed(1000, 900, 0, true);
    expect(recovery.opensMs(1000)).toBe(8000);
    recovery.probed(true, backoff.restNumber);
    expect([recovery.opensMs(1000), recovery.opensMs(5000)]).toEqual([4000, 0]);
  });

  it('never opens before a Retry-After, also where a probe permits it', () => {
    const { backoff, recovery } = setUp('both', 'trial');
    backoff.failed(0, 0, 900);
    recovery.probed(true, backoff.restNumber);
    expect([recovery.opensMs(400), recovery.opensMs(900)]).toEqual([500, 0]);
  });
});
