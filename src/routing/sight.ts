import type { LabelSelector, Labels } from '../common/selector/label-selector.js';
import type { RouteConfig, RouteUpstreamConfig } from '../config/access-config.js';
import type { Candidate } from './candidate.js';
import { ModelRoute } from './model-route.js';
import type { Plan } from './plan.js';
import { weightedShuffle } from './weighted-shuffle.js';

/** Selectors that all must hold. */
export interface SightSelectors {
  readonly models: readonly LabelSelector[];
  readonly upstreams: readonly LabelSelector[];
}

/** How many models several sights keep the result for. */
export interface Kept {
  models: number;
}

/**
 * What callers of one kind see under one route: of each model the candidates that route and selectors leave, in the
 * order of the route. Shared by all requests with the same route and selectors; keeps what it worked out.
 */
export class Sight {
  readonly #narrowed = new Map<ModelRoute, ModelRoute | null>();
  /** By id of the upstream; null = the route binds all. */
  readonly #bound: ReadonlyMap<string, RouteUpstreamConfig> | null;
  /** The route has an order of its own. */
  readonly #orders: boolean;

  constructor(
    private readonly route: RouteConfig,
    private readonly selectors: SightSelectors,
    private readonly random: () => number = Math.random,
    private readonly kept: Kept = { models: 0 },
  ) {
    const { upstreams } = route;
    this.#bound = upstreams === null ? null : new Map(upstreams.map((one) => [one.upstream, one]));
    this.#orders =
      new Set(upstreams?.map(({ priority }) => priority)).size > 1 ||
      (upstreams ?? []).some(({ weight }) => weight !== null);
  }

  /** The very model where nothing of it is hidden; null where all of it is. */
  narrow(model: ModelRoute): ModelRoute | null {
    let narrowed = this.#narrowed.get(model);
    if (narrowed === undefined) {
      this.#narrowed.set(model, (narrowed = this.#work(model, true)));
      this.kept.models++;
    }
    return narrowed;
  }

  /** As `narrow`, of upstreams that are addressed without a model: selectors of models have nothing to say. Not kept. */
  narrowDirect(model: ModelRoute): ModelRoute | null {
    return this.#work(model, false);
  }

  /** In the order of the route, with its limit of attempts; the very plan where the route has neither. */
  arrange(plan: Plan): Plan {
    const maxAttempts = Math.min(plan.maxAttempts, this.route.maxAttempts);
    if (!this.#orders) return maxAttempts === plan.maxAttempts ? plan : { ...plan, maxAttempts };
    return { ...plan, maxAttempts, candidates: this.#ordered(plan.candidates) };
  }

  /** Whether the route and the selectors of upstreams leave this one. */
  sees({ upstream }: Candidate): boolean {
    if (this.#bound?.has(upstream.id) === false) return false;
    return allHold(this.selectors.upstreams, upstream.config.labels);
  }

  #work(model: ModelRoute, named: boolean): ModelRoute | null {
    if (named && !allHold(this.selectors.models, model.model.labels)) return null;
    return model.only((candidate) => this.sees(candidate));
  }

  /** By priority, low first; inside one by chance where any has a weight, else as the model says. */
  #ordered(candidates: readonly Candidate[]): readonly Candidate[] {
    const entryOf = ({ upstream }: Candidate) => this.#bound?.get(upstream.id);
    const groups = Map.groupBy(candidates, (candidate) => entryOf(candidate)?.priority ?? 1);
    return [...groups]
      .sort(([a], [b]) => a - b)
      .flatMap(([, group]) =>
        group.some((candidate) => (entryOf(candidate)?.weight ?? null) !== null)
          ? weightedShuffle(group, (candidate) => entryOf(candidate)?.weight ?? 1, this.random)
          : group,
      );
  }
}

function allHold(selectors: readonly LabelSelector[], labels: Labels): boolean {
  return selectors.every((selector) => selector.matches(labels));
}
