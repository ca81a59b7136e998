import { Inject, Injectable } from '@nestjs/common';
import type { Clock, WallClock } from '../../common/time/clock.js';
import { ConfigStore } from '../../config/config.store.js';
import type { UpstreamConfig } from '../../config/gateway-config.js';
import { GATE_SOURCE, type GateSource } from '../../contracts/gate.js';
import { CLOCK, WALL_CLOCK } from '../../contracts/ports.js';
import { KeyMetrics, type KeyState } from '../../observability/metrics/key.metrics.js';
import { PoolKey } from './pool-key.js';
import { UpstreamKeys } from './upstream-keys.js';

/** Makes the key pools of the configuration and reports on them. Lives as long as the service. */
@Injectable()
export class KeyPools {
  readonly #pools = new Map<string, readonly PoolKey[]>();

  constructor(
    private readonly store: ConfigStore,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(WALL_CLOCK) private readonly wallClock: WallClock,
    metrics: KeyMetrics,
    @Inject(GATE_SOURCE) gates: GateSource,
  ) {
    for (const { id, keys } of store.current.providers) {
      if (keys !== null)
        this.#pools.set(
          id,
          keys.map((key) => new PoolKey(key, gates.gateOfKey(id, key))),
        );
    }
    metrics.states = () => this.#states();
  }

  /** All keys, by provider. */
  get all(): ReadonlyMap<string, readonly PoolKey[]> {
    return this.#pools;
  }

  /** Null where the provider has no pool. Called once for each upstream. */
  keysOf({ id, provider }: UpstreamConfig): UpstreamKeys | null {
    const keys = this.#pools.get(provider.id);
    if (keys === undefined) return null;
    return new UpstreamKeys(id, keys, provider.keyOrder, this.clock, this.wallClock);
  }

  *#states(): Iterable<KeyState> {
    const now = this.clock.now();
    const nowMs = this.wallClock();
    for (const [provider, keys] of this.#pools) {
      const upstreams = this.store.current.upstreams.filter((upstream) => upstream.provider.id === provider);
      for (const key of keys) {
        const { expiresAtMs } = key.config;
        yield {
          provider,
          key: key.id,
          restingSeconds: new Map([
            ['', key.restingEverywhereMs(now) / 1000],
            ...upstreams.map(({ id }): [string, number] => [id, key.restingAtMs(id, now) / 1000]),
          ]),
          expiresInSeconds: expiresAtMs === null ? null : Math.max(0, expiresAtMs - nowMs) / 1000,
        };
      }
    }
  }
}
