import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { ConfigStore } from '../config/config.store.js';
import type { UpstreamConfig } from '../config/gateway-config.js';
import { BackoffService } from './backoff/backoff.service.js';
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
  ) {
    for (const provider of store.current.providers) this.#clients.set(provider.id, new ProviderClient(provider));
    for (const upstream of store.current.upstreams) this.#upstreams.set(upstream.id, this.#make(upstream));
  }

  get all(): Iterable<Upstream> {
    return this.#upstreams.values();
  }

  get(id: string): Upstream {
    const upstream = this.#upstreams.get(id);
    if (upstream === undefined) throw new Error('an upstream was asked for that the configuration does not have');
    return upstream;
  }

  onApplicationShutdown(): void {
    for (const client of this.#clients.values()) client.close();
  }

  #make(config: UpstreamConfig): Upstream {
    const client = this.#clients.get(config.provider.id);
    if (client === undefined) throw new Error('an upstream names a provider that the configuration does not have');
    return new Upstream(config, client, this.backoffs.counterFor(config));
  }
}
