import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Clock } from '../common/time/clock.js';
import { ConfigStore } from '../config/config.store.js';
import type { UpstreamConfig } from '../config/gateway-config.js';
import { CLOCK } from '../contracts/ports.js';
import { GatewayMetrics, type UpstreamState } from '../observability/metrics/gateway.metrics.js';
import { BackoffService } from './backoff/backoff.service.js';
import { SlotRooms } from './concurrency/slot-rooms.js';
import { KeyPools } from './keys/key-pools.service.js';
import { ProviderClient } from './provider-client.js';
import { Upstream } from './upstream.js';

/** All upstreams of the configuration with their state, in file order. Lives as long as the service. */
@Injectable()
export class UpstreamRegistry implements OnApplicationShutdown {
  readonly #upstreams = new Map<string, Upstream>();
  readonly #clients = new Map<string, ProviderClient>();

  constructor(
    store: ConfigStore,
    private readonly backoffs: BackoffService,
    private readonly keyPools: KeyPools,
    private readonly rooms: SlotRooms,
    metrics: GatewayMetrics,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {
    for (const provider of store.current.providers)
      this.#clients.set(provider.id, new ProviderClient(provider, clock));
    for (const upstream of store.current.upstreams) this.#upstreams.set(upstream.id, this.#make(upstream));
    metrics.upstreamStates = () => this.#states();
  }

  get all(): Iterable<Upstream> {
    return this.#upstreams.values();
  }

  get(id: string): Upstream {
    const upstream = this.#upstreams.get(id);
    if (upstream === undefined)
      throw new Error('an upstream was asked for that the configuration does not have');
    return upstream;
  }

  onApplicationShutdown(): void {
    for (const client of this.#clients.values()) client.close();
  }

  *#states(): Iterable<UpstreamState> {
    const now = this.clock.now();
    for (const upstream of this.#upstreams.values()) {
      yield {
        id: upstream.id,
        provider: upstream.config.provider.id,
        inflight: upstream.slots.active,
        failStreak: upstream.backoff?.streak ?? 0,
        coolingSeconds: upstream.restingMs(now) / 1000,
      };
    }
  }

  #make(config: UpstreamConfig): Upstream {
    const client = this.#clients.get(config.provider.id);
    if (client === undefined)
      throw new Error('an upstream names a provider that the configuration does not have');
    const upstream = new Upstream(
      config,
      client,
      this.backoffs.counterFor(config),
      this.keyPools.keysOf(config),
    );
    this.rooms.enter(upstream);
    return upstream;
  }
}
