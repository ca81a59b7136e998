import { pino } from 'pino';
import { monotonicClock } from '../../src/common/time/clock.js';
import { ConfigStore } from '../../src/config/config.store.js';
import { GatewayLog } from '../../src/observability/log/gateway-log.js';
import type { QuotaMeter } from '../../src/quotas/quota-meter.js';
import { QuotaRegistry } from '../../src/quotas/quota.registry.js';
import { QuotaSet } from '../../src/quotas/quota-set.js';
import { QuotaStore } from '../../src/quotas/quota.store.js';
import type { QuotaTicket } from '../../src/quotas/quota-ticket.js';
import { SharedQuotas } from '../../src/quotas/shared-quotas.js';
import { RedisStore } from '../../src/state/redis/redis-store.js';
import { type OnError, SharedState } from '../../src/state/shared-state.js';
import type { SharedStore } from '../../src/state/shared-store.js';
import { configOf } from './slot-rooms.js';
import { waitFor } from './wait-for.js';

export interface ReplicaOptions {
  readonly url: string;
  readonly prefix: string;
  readonly onError?: OnError;
  readonly leaseMs?: number;
  readonly wallClock?: () => number;
  /** Instead of the one at `url`. */
  readonly store?: SharedStore;
}

/** The quotas of one replica with nothing around them: of a provider and an upstream of it. */
export class ReplicaQuotas {
  readonly state: SharedState | null;
  readonly store: SharedStore | null;
  readonly meters: readonly QuotaMeter[];
  readonly #set: QuotaSet;
  readonly #wallClock: () => number;
  readonly #shared: SharedQuotas;

  constructor(
    quota: { readonly provider?: object[]; readonly upstream?: object[] },
    options: ReplicaOptions | null,
  ) {
    const config = configOf({
      providers: [{ id: 'p', url: 'http://127.0.0.1:9/v1', quota: quota.provider ?? [] }],
      upstreams: [{ id: 'u', provider: 'p', model: 'r', quota: quota.upstream ?? [] }],
      models: [{ name: 'm', upstreams: ['u'] }],
    });
    this.#wallClock = options?.wallClock ?? Date.now;
    const configs = new ConfigStore(config);
    const kept = new QuotaStore(configs, new GatewayLog(pino({ enabled: false })), this.#wallClock);
    const registry = new QuotaRegistry(configs, kept, this.#wallClock);
    const [model] = config.models;
    const [entry] = model?.entries ?? [];
    if (model === undefined || entry === undefined) throw new Error('unreachable');
    this.#set = registry.gateOf(model, entry) as QuotaSet;
    this.meters = this.#set.meters;
    this.store = null;
    this.state = null;
    if (options !== null) {
      const { leaseMs = 15_000, onError = 'local', prefix, url } = options;
      this.store = options.store ?? new RedisStore({ url, prefix, timeoutMs: 2000, leaseMs, newcomerMs: 0 });
      const log = { lost: () => {}, back: () => {} };
      this.state = new SharedState({
        store: this.store, clock: monotonicClock, onError, leaseMs, timeoutMs: 50, patienceMs: 5000, log,
      }); // prettier-ignore
    }
    this.#shared = new SharedQuotas(registry, this.state, this.#wallClock);
  }

  static async several(
    count: number,
    quota: { readonly provider?: object[]; readonly upstream?: object[] },
    options: ReplicaOptions,
  ): Promise<ReplicaQuotas[]> {
    const replicas = Array.from({ length: count }, () => new ReplicaQuotas(quota, options));
    await Promise.all(replicas.map(async ({ state }) => await state?.open()));
    await waitFor(
      async () => {
        const known = await Promise.all(replicas.map(async ({ store }) => await store?.renew([])));
        return known.every((answer) => answer?.replicas === count) && replicas.every(({ synced }) => synced);
      },
      'all know of each other',
    ); // prettier-ignore
    for (const { state } of replicas) await waitFor(() => state?.replicas === count, 'it was told');
    return replicas;
  }

  /** Not on a share. */
  get synced(): boolean {
    return this.meters.every(({ isAlone }) => !isAlone);
  }

  async take(tokens = 0): Promise<QuotaTicket | null> {
    return await this.#set.take(tokens);
  }

  closedMs(): number {
    return this.#set.closedMs();
  }

  left(meter = 0): number {
    return this.meters[meter]?.remaining(this.#wallClock()) ?? NaN;
  }

  /** What was told to the store before has been heard there, and what it told before has been heard here. */
  async heard(): Promise<void> {
    await this.store?.held(['x']);
  }

  async close(): Promise<void> {
    this.#shared.onApplicationShutdown();
    await this.state?.close();
  }
}
