import { Injectable } from '@nestjs/common';
import { ConfigStore } from '../config/config.store.js';
import type { ModelConfig } from '../config/gateway-config.js';
import { UpstreamRegistry } from '../upstreams/upstream.registry.js';
import type { Candidate } from './candidate.js';

/** A model of the file and the upstreams behind it, in order of priority. */
export interface ModelRoute {
  readonly model: ModelConfig;
  readonly candidates: readonly Candidate[];
}

/** From a model's name to its candidates. Compiled once; names are looked up in a map, never on an object. */
@Injectable()
export class RoutingService {
  readonly #routes = new Map<string, ModelRoute>();

  constructor(store: ConfigStore, registry: UpstreamRegistry) {
    for (const model of store.current.models) {
      const candidates = model.upstreams.map((upstream) => ({ model, upstream: registry.get(upstream.id) }));
      this.#routes.set(model.name, { model, candidates });
    }
  }

  plan(modelName: string): ModelRoute | undefined {
    return this.#routes.get(modelName);
  }

  /** All models in file order. */
  get models(): Iterable<ModelRoute> {
    return this.#routes.values();
  }
}
