import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { SchedulerRegistry } from '@nestjs/schedule';
import { type Clock, timerDelay } from '../common/time/clock.js';
import { CLOCK, PROBE_SENDER, type ProbeSender } from '../contracts/ports.js';
import { GatewayLog } from '../observability/log/gateway-log.js';
import { GatewayMetrics } from '../observability/metrics/gateway.metrics.js';
import { SHARED_STATE, type SharedState, ignoreUnavailable } from '../state/shared-state.js';
import type { Backoff } from '../upstreams/backoff/backoff.js';
import { sendsProbes } from '../upstreams/backoff/recovery.js';
import type { Upstream } from '../upstreams/upstream.js';
import { ConcurrencyService } from '../upstreams/concurrency/concurrency.service.js';
import type { SharedClaims } from '../upstreams/shared/shared-claims.js';
import { UpstreamRegistry } from '../upstreams/upstream.registry.js';

const LEAD_PART = 0.9;

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
    private readonly concurrency: ConcurrencyService,
    @Inject(SHARED_STATE) private readonly shared: SharedState | null = null,
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
        const { shared } = this.concurrency;
        if (seat !== null && shared !== null) {
          void this.#probeHolding(upstream, backoff, shared);
          return;
        }
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

  /** Other replicas may be at work on the same machine. */
  async #probeHolding(upstream: Upstream, backoff: Backoff, shared: SharedClaims): Promise<void> {
    const controller = new AbortController();
    this.#running.set(upstream, controller);
    const giveBack = await shared.holdForProbe(upstream);
    if (giveBack !== null && !controller.signal.aborted) await this.#probe(upstream, backoff, controller);
    giveBack?.();
    this.#running.delete(upstream);
  }

  async #probe(
    upstream: Upstream,
    backoff: Backoff,
    controller: AbortController = new AbortController(),
  ): Promise<void> {
    const { restNumber } = backoff;
    this.#running.set(upstream, controller);
    // One of all replicas asks for each interval: what comes of it is told to the others.
    const leads = this.shared?.ok !== true || (await this.#leads(this.shared, upstream));
    const alive = leads ? await this.sender.probe(upstream.config, controller.signal) : null;
    this.#running.delete(upstream);
    if (alive === null || controller.signal.aborted) return;
    const provider = upstream.config.provider.id;
    this.metrics.probed(upstream.id, provider, alive);
    const { wake } = upstream.config.probe;
    this.log.probed(upstream.id, provider, alive, wake);
    if (wake === 'trial') {
      upstream.recovery?.probed(alive, restNumber);
      if (this.shared?.ok) {
        const news = JSON.stringify([upstream.id, alive, restNumber]);
        this.shared.store.tell('probed', news).catch(ignoreUnavailable);
      }
    }
    if (wake === 'full' && alive) backoff.succeeded();
  }

  async #leads({ store }: SharedState, { config, id }: Upstream): Promise<boolean> {
    try {
      // A little less than the interval, so that the turn is free again when the next one comes.
      return await store.lead(`probe:${id}`, config.probeIntervalMs * LEAD_PART);
    } catch (error) {
      ignoreUnavailable(error);
      return true;
    }
  }
}

/** A probe with a key that rests would spend the very limit the key rests from. */
function keyAtHand({ keys }: Upstream): boolean {
  return keys === null || keys.closedMs() === 0;
}
