import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { SchedulerRegistry } from '@nestjs/schedule';
import { type Clock, timerDelay } from '../common/time/clock.js';
import { CLOCK, PROBE_SENDER, type ProbeSender } from '../contracts/ports.js';
import { GatewayLog } from '../observability/log/gateway-log.js';
import { GatewayMetrics } from '../observability/metrics/gateway.metrics.js';
import type { Backoff } from '../upstreams/backoff/backoff.js';
import { sendsProbes } from '../upstreams/backoff/recovery.js';
import type { Upstream } from '../upstreams/upstream.js';
import { UpstreamRegistry } from '../upstreams/upstream.registry.js';

/**
 * Wakes resting upstreams: while one rests, a small request each interval asks whether it is back. Owns the intervals,
 * which exist only while something rests. Probes take no slot but that of a slot group, never overlap for one upstream,
 * never lengthen a rest. What a success means is the upstream's `probe.wake`.
 */
@Injectable()
export class ProberService implements OnModuleInit, OnApplicationShutdown {
  readonly #stop = new AbortController();
  /** At most one for an upstream, also across rests. */
  readonly #running = new Map<Upstream, AbortController>();

  constructor(
    private readonly registry: UpstreamRegistry,
    private readonly scheduler: SchedulerRegistry,
    @Inject(PROBE_SENDER) private readonly sender: ProbeSender,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly metrics: GatewayMetrics,
    private readonly log: GatewayLog,
  ) {}

  onModuleInit(): void {
    for (const upstream of this.registry.all) {
      const { backoff } = upstream;
      if (backoff === null || !sendsProbes(upstream.config)) continue;
      backoff.onRest(() => this.#watch(upstream, backoff));
    }
  }

  onApplicationShutdown(): void {
    this.#stop.abort();
    for (const controller of this.#running.values()) controller.abort();
    for (const name of this.scheduler.getIntervals()) {
      if (name.startsWith('probe:')) this.scheduler.deleteInterval(name);
    }
  }

  #watch(upstream: Upstream, backoff: Backoff): void {
    const name = `probe:${upstream.id}`;
    if (this.#stop.signal.aborted || this.scheduler.doesExist('interval', name)) return;
    const tick = () => {
      const now = this.clock.now();
      if (backoff.restingMs(now) === 0) {
        // Probes stop with the rest, also one that is under way.
        this.#running.get(upstream)?.abort();
        this.scheduler.deleteInterval(name);
      } else if (!this.#running.has(upstream) && backoff.probeAllowed(now) && keyAtHand(upstream)) {
        const seat = upstream.config.probe.mode === 'completion' ? upstream.seat : null;
        const giveBack = seat === null ? null : seat.holdForProbe();
        // A completion must not drive a model from the machine that is at work, or that somebody waits for.
        if (seat !== null && giveBack === null) return;
        // Trap: nobody catches what an interval throws; a probe never rejects.
        void this.#probe(upstream, backoff).finally(() => giveBack?.());
      }
    };
    const interval = setInterval(tick, timerDelay(upstream.config.probeIntervalMs));
    interval.unref();
    this.scheduler.addInterval(name, interval);
  }

  async #probe(upstream: Upstream, backoff: Backoff): Promise<void> {
    const controller = new AbortController();
    const { restNumber } = backoff;
    this.#running.set(upstream, controller);
    const alive = await this.sender.probe(upstream.config, controller.signal);
    this.#running.delete(upstream);
    if (alive === null || controller.signal.aborted) return;
    const provider = upstream.config.provider.id;
    this.metrics.probed(upstream.id, provider, alive);
    const { wake } = upstream.config.probe;
    this.log.probed(upstream.id, provider, alive, wake);
    if (wake === 'trial') upstream.recovery?.probed(alive, restNumber);
    else if (alive) backoff.succeeded();
  }
}

/** A probe with a key that rests would spend the very limit the key rests from. */
function keyAtHand({ keys }: Upstream): boolean {
  return keys === null || keys.closedMs() === 0;
}
