import { SchedulerRegistry } from '@nestjs/schedule';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { loadConfig } from '../config/loader/load-config.js';
import type { UpstreamConfig } from '../config/gateway-config.js';
import type { ProbeSender } from '../contracts/ports.js';
import type { GatewayLog } from '../observability/log/gateway-log.js';
import type { GatewayMetrics } from '../observability/metrics/gateway.metrics.js';
import { BackoffService } from '../upstreams/backoff/backoff.service.js';
import type { SharedState } from '../state/shared-state.js';
import { StateUnavailable } from '../state/state-unavailable.js';
import type { ConcurrencyService } from '../upstreams/concurrency/concurrency.service.js';
import type { ProviderClient } from '../upstreams/provider-client.js';
import type { Seat } from '../upstreams/concurrency/seat.js';
import { Upstream } from '../upstreams/upstream.js';
import type { UpstreamRegistry } from '../upstreams/upstream.registry.js';
import { ProberService } from './prober.service.js';

interface Probe {
  readonly upstream: string;
  readonly signal: AbortSignal;
  answer(alive: boolean): Promise<void>;
}

/** Probes wait until the test answers them. */
class ManualSender implements ProbeSender {
  readonly probes: Probe[] = [];
  running = 0;
  most = 0;

  probe(upstream: UpstreamConfig, signal: AbortSignal): Promise<boolean> {
    this.running++;
    this.most = Math.max(this.most, this.running);
    return new Promise((resolve) => {
      const answer = async (alive: boolean) => {
        this.running--;
        resolve(alive);
        await settled();
      };
      this.probes.push({ upstream: upstream.id, signal, answer });
    });
  }

  get last(): Probe {
    return this.probes.at(-1) as Probe;
  }
}

async function settled(): Promise<void> {
  for (let i = 0; i < 5; i++) await Promise.resolve();
}

function setUp(upstreams: object[], provider: object = {}, shared: SharedState | null = null) {
  const result = loadConfig(
    {
      text: JSON.stringify({
        providers: [{ id: 'p', url: 'http://127.0.0.1:9/v1', ...provider }],
        upstreams: upstreams.map((extra, i) => ({ id: `u${i}`, provider: 'p', model: 'm', ...extra })),
        models: [{ name: 'm', upstreams: upstreams.map((_, i) => `u${i}`) }],
      }),
    },
    {},
  );
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  const counters = new BackoffService();
  const all = result.config.upstreams.map(
    (config) => new Upstream(config, {} as ProviderClient, counters.counterFor(config)),
  );
  const sender = new ManualSender();
  const pings: string[] = [];
  const scheduler = new SchedulerRegistry();
  const prober = new ProberService(
    { all } as unknown as UpstreamRegistry,
    scheduler,
    sender,
    { now: () => performance.now() },
    {
      probed: (id: string, _: string, ok: boolean) => pings.push(`${id} ${ok ? 'ok' : 'fail'}`),
    } as unknown as GatewayMetrics,
    { probed: () => {} } as unknown as GatewayLog,
    { shared: null } as unknown as ConcurrencyService,
    shared,
  );
  prober.onModuleInit();
  const fail = (i: number, retryAfterMs?: number) =>
    (all[i] as Upstream).backoff?.failed(performance.now(), performance.now(), retryAfterMs);
  return { all, sender, pings, scheduler, prober, fail };
}

const after = (ms: number) => vi.advanceTimersByTimeAsync(ms);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

describe('ProberService', () => {
  it('asks a resting upstream each interval, and puts it back at once when it is alive', async () => {
    const { all, sender, pings, fail } = setUp([{ backoff: 'PT1M', probe_interval: 'PT0.3S' }]);
    fail(0);
    await after(299);
    expect(sender.probes).toHaveLength(0);
    await after(1);
    expect(sender.probes).toHaveLength(1);
    await sender.last.answer(false);
    expect(all[0]?.backoff?.streak).toBe(1);
    await after(300);
    expect(sender.probes).toHaveLength(2);
    await sender.last.answer(true);
    expect(all[0]?.restingMs(performance.now())).toBe(0);
    expect(all[0]?.backoff?.streak).toBe(0);
    expect(pings).toEqual(['u0 fail', 'u0 ok']);
    await after(5000);
    expect(sender.probes).toHaveLength(2);
  });

  it('has no timer while nothing rests, and lets go of the one it had', async () => {
    const { scheduler, sender, fail } = setUp([{ backoff: 'PT1M', probe_interval: 'PT0.3S' }]);
    expect(scheduler.getIntervals()).toEqual([]);
    fail(0);
    expect(scheduler.getIntervals()).toHaveLength(1);
    await after(300);
    await sender.last.answer(true);
    await after(300);
    expect(scheduler.getIntervals()).toEqual([]);
  });

  it('asks nothing while no key of the pool can be used, and goes on when one can', async () => {
    const { all, sender, pings, fail } = setUp([{ probe_interval: 'PT0.3S' }], {
      keys: ['sk-a'],
      backoff: 'PT1M',
    });
    let closedMs = 500;
    Object.defineProperty(all[0], 'keys', { value: { closedMs: () => closedMs } });
    fail(0, 0);
    fail(0, 0);
    fail(0, 0);
    await after(900);
    expect([sender.probes.length, pings.length]).toEqual([0, 0]);
    closedMs = 0;
    await after(300);
    expect(sender.probes).toHaveLength(1);
  });

  it('never overlaps for one upstream, within a rest or across rests', async () => {
    const { sender, fail } = setUp([{ backoff: 'PT1M', probe_interval: 'PT0.2S' }]);
    fail(0);
    await after(900);
    expect(sender.probes).toHaveLength(1);
    // The rest ends by time with the probe still under way; it is aborted but has not let go yet.
    await after(400);
    expect(sender.last.signal.aborted).toBe(true);
    fail(0);
    await after(1000);
    expect(sender.probes).toHaveLength(1);
    await sender.last.answer(false);
    await after(200);
    expect(sender.probes).toHaveLength(2);
    expect(sender.most).toBe(1);
  });

  it('changes and counts nothing for a probe that was stopped', async () => {
    const { all, sender, pings, fail } = setUp([{ backoff: 'PT1M', probe_interval: 'PT0.2S' }]);
    fail(0);
    await after(1300);
    expect(sender.last.signal.aborted).toBe(true);
    fail(0);
    await sender.last.answer(true);
    expect(all[0]?.backoff?.streak).toBe(2);
    expect(pings).toEqual([]);
  });

  it('never lengthens a rest', async () => {
    const { all, sender, fail } = setUp([{ backoff: 'PT1M', probe_interval: 'PT0.2S' }]);
    fail(0);
    for (let i = 0; i < 4; i++) {
      await after(200);
      await sender.last.answer(false);
    }
    expect(all[0]?.restingMs(performance.now())).toBe(200);
  });

  it('sends none before the time that Retry-After named', async () => {
    const { sender, fail } = setUp([{ backoff: 'PT1M', probe_interval: 'PT0.5S' }]);
    fail(0, 4000);
    await after(3900);
    expect(sender.probes).toHaveLength(0);
    fail(0);
    await after(600);
    expect(sender.probes).toHaveLength(1);
  });

  it('sends none where the interval is 0, or where nothing ever rests', async () => {
    const { sender, fail, scheduler } = setUp([{ backoff: 'PT1M', probe_interval: 'PT0S' }, {}]);
    fail(0);
    await after(60_000);
    expect(sender.probes).toHaveLength(0);
    expect(scheduler.getIntervals()).toEqual([]);
  });

  it.each([
    ['probe', 1],
    ['both', 1],
    ['half_open', 0],
    ['timer', 0],
  ])('with recovery: %s sends %d', async (recovery, count) => {
    const { sender, fail, scheduler } = setUp([{ backoff: 'PT1M', probe_interval: 'PT0.6S', recovery }]);
    fail(0);
    expect(scheduler.getIntervals()).toHaveLength(count);
    await after(1000);
    expect(sender.probes).toHaveLength(count);
  });

  it('with wake: trial lets requests try, and takes that back, without ending the rest', async () => {
    const { all, sender, pings, fail } = setUp([
      { backoff: 'PT1H', probe_interval: 'PT0.2S', probe: { wake: 'trial' } },
    ]);
    const [upstream] = all as [Upstream];
    fail(0);
    const open = () => upstream.recovery?.trialOpen(performance.now());
    expect(open()).toBe(false);
    await after(200);
    await sender.last.answer(true);
    expect([open(), upstream.backoff?.streak, upstream.restingMs(performance.now())]).toEqual([true, 1, 800]);
    await after(200);
    await sender.last.answer(false);
    expect(open()).toBe(false);
    expect(pings).toEqual(['u0 ok', 'u0 fail']);
  });

  it('takes no permission from a probe that was asked before the present rest', async () => {
    const { all, sender, fail } = setUp([
      { backoff: 'PT1H', probe_interval: 'PT0.2S', probe: { wake: 'trial' } },
    ]);
    fail(0);
    await after(200);
    fail(0);
    await sender.last.answer(true);
    expect(all[0]?.recovery?.trialOpen(performance.now())).toBe(false);
  });

  it('does not turn a huge interval into one of a millisecond', async () => {
    const { sender, fail } = setUp([{ backoff: 'P1Y', probe_interval: 'P1Y' }]);
    fail(0, 200 * 24 * 3_600_000);
    await after(60_000);
    expect(sender.probes).toHaveLength(0);
  });

  it('asks each upstream of a shared counter, and one that is alive ends the rest of all', async () => {
    const { all, sender, fail } = setUp([{}, {}], { backoff: 'PT1M', probe_interval: 'PT0.2S' });
    fail(0);
    await after(200);
    expect(sender.probes.map(({ upstream }) => upstream)).toEqual(['u0', 'u1']);
    await sender.probes[1]?.answer(true);
    expect(all.map((upstream) => upstream.restingMs(performance.now()))).toEqual([0, 0]);
    await after(200);
    expect(sender.probes[0]?.signal.aborted).toBe(true);
  });

  it('ends everything at the shutdown and begins nothing after it', async () => {
    const { prober, scheduler, sender, fail } = setUp([
      { backoff: 'PT1M', probe_interval: 'PT0.2S' },
      { backoff: 'PT1M' },
    ]);
    fail(0);
    await after(200);
    prober.onApplicationShutdown();
    expect(sender.last.signal.aborted).toBe(true);
    expect(scheduler.getIntervals()).toEqual([]);
    fail(1);
    await after(5000);
    expect(sender.probes).toHaveLength(1);
  });
});

describe('a probe of an upstream in a slot group', () => {
  const grouped = [{ backoff: 'PT1M', probe_interval: 'PT0.3S' }];
  const seatOf = (hold: () => (() => void) | null) => ({ holdForProbe: hold }) as unknown as Seat;

  it('waits until the group is free, and holds its slot until it is over', async () => {
    const { all, sender, fail } = setUp(grouped);
    let held = 0;
    let busy = true;
    const hold = () => {
      held++;
      return () => held--;
    };
    (all[0] as Upstream).seat = seatOf(() => (busy ? null : hold()));
    for (let i = 0; i < 6; i++) fail(0);
    await after(900);
    expect(sender.probes).toHaveLength(0);
    busy = false;
    await after(300);
    expect([sender.probes.length, held]).toEqual([1, 1]);
    await after(600);
    expect([sender.probes.length, held]).toEqual([1, 1]);
    await sender.last.answer(false);
    expect(held).toBe(0);
    await after(300);
    await sender.last.answer(true);
    expect([sender.probes.length, held]).toEqual([2, 0]);
  });

  it('asks for no slot where it sends no completion', async () => {
    const { all, sender, fail } = setUp([{ ...grouped[0], probe: { mode: 'get' } }]);
    (all[0] as Upstream).seat = seatOf(() => null);
    fail(0);
    await after(300);
    expect(sender.probes).toHaveLength(1);
    await sender.last.answer(true);
  });
});

describe('ProberService among replicas', () => {
  it('asks only where it is this replica’s turn, and all the same where nobody can tell', async () => {
    const answers: (boolean | Error)[] = [];
    const turns: [task: string, forMs: number][] = [];
    const lead = (task: string, forMs: number) => {
      turns.push([task, forMs]);
      const answer = answers.shift() as boolean | Error;
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
    };
    const shared = { ok: true, store: { lead } } as unknown as SharedState;
    const { sender, fail } = setUp([{ backoff: 'PT1M', probe_interval: 'PT1S' }], {}, shared);
    for (let i = 0; i < 6; i++) fail(0);
    answers.push(false, true);
    await after(1000);
    expect(sender.probes).toHaveLength(0);
    await after(1000);
    expect(sender.probes).toHaveLength(1);
    await sender.last.answer(false);
    answers.push(new StateUnavailable('not connected'));
    await after(1000);
    expect(sender.probes).toHaveLength(2);
    expect(turns).toEqual(Array.from({ length: 3 }, () => ['probe:u0', 900]));
    await sender.last.answer(true);
  });
});
