import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { unknownModel } from '../common/errors/catalogue.js';
import { printable } from '../common/text/mask.js';
import { ConfigStore } from '../config/config.store.js';
import type { GatewayConfig, ModelConfig } from '../config/gateway-config.js';
import type { Exchange } from '../contracts/exchange.js';
import { GATE_SOURCE, type Gate, type GateSource } from '../contracts/gate.js';
import { GatewayLog } from '../observability/log/gateway-log.js';
import { GatewayMetrics } from '../observability/metrics/gateway.metrics.js';
import { UpstreamRegistry } from '../upstreams/upstream.registry.js';
import { DirectRoutes } from './direct-routes.js';
import { narrowed } from './hints.js';
import { ModelRoute } from './model-route.js';
import type { Plan } from './plan.js';
import { PolicyExplorer } from './policy.explorer.js';

/** From a model's name to its candidates in order. Compiled once; names are looked up in maps, never on an object. */
@Injectable()
export class RoutingService implements OnModuleInit {
  readonly #config: GatewayConfig;
  readonly #routes = new Map<string, ModelRoute>();
  readonly #direct: DirectRoutes | null;
  /** Made when first asked for, and kept: what is configured bounds their number. */
  readonly #directRoutes = new Map<string, ModelRoute>();

  constructor(
    store: ConfigStore,
    private readonly registry: UpstreamRegistry,
    private readonly policies: PolicyExplorer,
    private readonly metrics: GatewayMetrics,
    private readonly log: GatewayLog,
    @Inject(GATE_SOURCE) private readonly gates: GateSource,
  ) {
    this.#config = store.current;
    this.#direct = this.#config.server.direct ? new DirectRoutes(this.#config) : null;
  }

  /** Not earlier: policies of plugins must exist. */
  onModuleInit(): void {
    for (const [i, model] of this.#config.models.entries()) {
      const policy =
        model.order === 'listed' ? null : this.policies.policy(model.order, `models[${i}].order`);
      this.#routes.set(model.name, this.#compile(model, policy));
    }
  }

  /** All models in file order. */
  get models(): Iterable<ModelRoute> {
    return this.#routes.values();
  }

  /** A model of the file by its exact name. */
  named(name: string): ModelRoute | undefined {
    return this.#routes.get(name);
  }

  /**
   * The model that a request for this name gets: of the file, addressed directly, or the default. Throws a 404 where
   * there is none.
   */
  resolve(name: string, requestId: string): ModelRoute {
    const route = this.#routes.get(name) ?? this.#addressed(name);
    if (route !== undefined) return route;
    const { defaultModel } = this.#config;
    const fallback = defaultModel === null ? undefined : this.#routes.get(defaultModel);
    if (fallback === undefined) throw unknownModel(printable(name));
    this.log.defaulted(requestId, name, fallback.model.name);
    return fallback;
  }

  /** The candidates in the order for this request. Throws a 400 where its hints leave none. */
  plan(route: ModelRoute, exchange: Exchange): Plan {
    const plan = route.model.order === 'listed' ? route.listed : this.#ordered(route, exchange);
    return this.#config.server.allowHints ? narrowed(plan, exchange.headers) : plan;
  }

  #ordered(route: ModelRoute, exchange: Exchange): Plan {
    try {
      return route.plan(exchange);
    } catch (error) {
      this.metrics.pluginFailed(route.model.order, 'order');
      this.log.pluginFailed(exchange.id, route.model.order, 'order', error);
      return route.listed;
    }
  }

  #addressed(name: string): ModelRoute | undefined {
    if (this.#direct === null) return undefined;
    let route = this.#directRoutes.get(name);
    if (route !== undefined) return route;
    const model = this.#direct.find(name);
    if (model === undefined) return undefined;
    route = this.#compile(model, null);
    this.#directRoutes.set(name, route);
    return route;
  }

  #compile(model: ModelConfig, policy: ModelRoute['policy']): ModelRoute {
    const candidates = model.entries.map((entry) => {
      const upstream = this.registry.get(entry.upstream.id);
      return { model, entry, upstream, gates: gatesOf(upstream.keys, this.gates.gateOf(model, entry)) };
    });
    return new ModelRoute(model, candidates, policy);
  }
}

function gatesOf(...gates: readonly (Gate | null)[]): readonly Gate[] | null {
  const known = gates.filter((gate) => gate !== null);
  return known.length === 0 ? null : known;
}
