import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { unknownModel } from '../common/errors/catalogue.js';
import { printable } from '../common/text/mask.js';
import { ConfigStore } from '../config/config.store.js';
import type { RouteConfig } from '../config/access-config.js';
import type { GatewayConfig, ModelConfig } from '../config/gateway-config.js';
import type { Exchange } from '../contracts/exchange.js';
import type { Operation } from '../contracts/operation.js';
import { GATE_SOURCE, type Gate, type GateSource } from '../contracts/gate.js';
import { GatewayLog } from '../observability/log/gateway-log.js';
import { GatewayMetrics } from '../observability/metrics/gateway.metrics.js';
import { UpstreamRegistry } from '../upstreams/upstream.registry.js';
import { DirectRoutes } from './direct-routes.js';
import { narrowed } from './hints.js';
import { lacks, ModelRoute } from './model-route.js';
import type { Absent, Plan } from './plan.js';
import type { Sight } from './sight.js';
import { type Selecting, Sights } from './sights.js';
import { PolicyExplorer } from './policy.explorer.js';

/** What of a request decides which models are there for it. */
export interface Asking {
  readonly requestId: string;
  readonly sight: Sight | null;
  /** A provider and its model may be addressed without an entry in `models`. */
  readonly mayAddress: boolean;
}

/** From a model's name to its candidates in order. Compiled once; names are looked up in maps, never on an object. */
@Injectable()
export class RoutingService implements OnModuleInit {
  readonly #config: GatewayConfig;
  readonly #routes = new Map<string, ModelRoute>();
  /** Names of the file that lead nowhere: they are not addressed directly either. */
  readonly #disabled = new Set<string>();
  readonly #direct: DirectRoutes | null;
  /** Made when first asked for, and kept: what is configured bounds their number. */
  readonly #directRoutes = new Map<string, ModelRoute>();
  readonly #sights = new Sights();

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
        model.order === 'listed' ? null : this.policies.policy(model.order, ['models', i, 'order']);
      const route = this.#compile(model, policy);
      if (route === null) this.#disabled.add(model.name);
      else this.#routes.set(model.name, route);
    }
  }

  /** What somebody sees under a route; null = everything, as the models list it. */
  sight(route: RouteConfig, caller: Selecting | null): Sight | null {
    return this.#sights.of(route, caller);
  }

  /** The models that somebody sees, in file order. */
  *visible(sight: Sight | null): Iterable<ModelConfig> {
    for (const route of this.#routes.values())
      if (sight === null || sight.narrow(route) !== null) yield route.model;
  }

  /** A model of the file by its exact name, as far as it is seen. */
  named(name: string, sight: Sight | null): ModelRoute | undefined {
    const route = this.#routes.get(name);
    if (route === undefined || sight === null) return route;
    return sight.narrow(route) ?? undefined;
  }

  /**
   * The model that a request for this name gets: of the file, addressed directly, or the default, all as far as they are
   * seen. Throws a 404 where there is none; one that is hidden is told like one that does not exist.
   */
  resolve(name: string, asking: Asking): ModelRoute {
    const { sight } = asking;
    const route = this.named(name, sight) ?? this.#addressed(name, asking);
    if (route !== undefined) return route;
    const { defaultModel } = this.#config;
    const fallback = defaultModel === null ? undefined : this.named(defaultModel, sight);
    if (fallback === undefined) throw unknownModel(printable(name));
    this.log.defaulted(asking.requestId, name, fallback.model.name);
    return fallback;
  }

  /** The candidates in the order for this request. Throws a 400 where its hints leave none. */
  plan(route: ModelRoute, exchange: Exchange, sight: Sight | null): Plan {
    const own = route.model.order === 'listed' ? route.listed : this.#ordered(route, exchange);
    const plan = sight === null ? own : sight.arrange(own);
    return this.#config.server.allowHints ? narrowed(plan, exchange.headers) : plan;
  }

  /** The entries of a model that are no candidates of `route`, which was made of it for this request; for explanations. */
  absent(route: ModelRoute, sight: Sight | null, operation: Operation): readonly Absent[] {
    const present = new Set(route.candidates.map(({ entry }) => entry));
    const { model } = route;
    return model.entries.flatMap((entry): Absent[] => {
      if (present.has(entry)) return [];
      const candidate = { model, entry, upstream: this.registry.get(entry.upstream.id), gates: null };
      const { config } = candidate.upstream;
      if (config.disabled) return [{ candidate, reason: 'disabled' }];
      if (sight?.sees(candidate) === false) return [{ candidate, reason: 'route' }];
      return [{ candidate, reason: lacks(config, operation) ?? 'issued' }];
    });
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

  #addressed(name: string, { sight, mayAddress }: Asking): ModelRoute | undefined {
    if (this.#direct === null || !mayAddress || this.#disabled.has(name)) return undefined;
    const route = this.#directRoute(name, this.#direct);
    if (route === undefined || sight === null) return route;
    return sight.narrowDirect(route) ?? undefined;
  }

  #directRoute(name: string, direct: DirectRoutes): ModelRoute | undefined {
    let route = this.#directRoutes.get(name);
    if (route !== undefined) return route;
    const model = direct.find(name);
    if (model === undefined) return undefined;
    route = this.#compile(model, null) ?? undefined;
    if (route !== undefined) this.#directRoutes.set(name, route);
    return route;
  }

  /** Null where all of it is disabled: such a model is not there. */
  #compile(model: ModelConfig, policy: ModelRoute['policy']): ModelRoute | null {
    const candidates = model.entries.map((entry) => {
      const upstream = this.registry.get(entry.upstream.id);
      return { model, entry, upstream, gates: gatesOf(upstream.keys, this.gates.gateOf(model, entry)) };
    });
    const enabled = candidates.filter(({ upstream }) => !upstream.config.disabled);
    return model.disabled || enabled.length === 0 ? null : new ModelRoute(model, enabled, policy);
  }
}

function gatesOf(...gates: readonly (Gate | null)[]): readonly Gate[] | null {
  const known = gates.filter((gate) => gate !== null);
  return known.length === 0 ? null : known;
}
