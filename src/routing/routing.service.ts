import { Injectable } from '@nestjs/common';
import { ConfigStore } from '../config/config.store.js';
import type { ModelConfig } from '../config/gateway-config.js';
import { UpstreamRegistry } from '../upstreams/upstream.registry.js';
import type { Candidate } from './candidate.js';

/** A model of the file and the candidates behind it, in the order in which they are to be tried. */
export interface Plan {
  readonly model: ModelConfig;
  readonly candidates: readonly Candidate[];
}

/** From a model's name to its candidates. Compiled once; names are looked up in a map, never on an object. */
@Injectable()
export class RoutingService {
  readonly #plans = new Map<string, Plan>();

  constructor(store: ConfigStore, registry: UpstreamRegistry) {
    for (const model of store.current.models) {
      const candidates = model.entries.map((entry) => ({
        model,
        entry,
        upstream: registry.get(entry.upstream.id),
        gates: null,
      }));
      this.#plans.set(model.name, { model, candidates });
    }
  }

  plan(modelName: string): Plan | undefined {
    return this.#plans.get(modelName);
  }

  /** All models in file order. */
  get models(): Iterable<Plan> {
    return this.#plans.values();
  }
}
