import type { LabelSelector } from '../common/selector/label-selector.js';
import type { RouteConfig, SelectConfig } from '../config/access-config.js';
import { type Kept, Sight } from './sight.js';

/** Thousands of consumers may have selectors of their own, on several routes each; a sight alone is small. */
const LIMIT = 50_000;
/** What all of them together worked out: a list of ten thousand models is as many for one. */
const KEPT_LIMIT = 500_000;

/** The part of a caller that decides what it sees. */
export interface Selecting {
  /** All of them must hold. Callers with the same selectors have the very same list: sights are found by it. */
  readonly selects: readonly SelectConfig[];
}

const NOBODY: readonly SelectConfig[] = [];

/** One {@link Sight} for each route and list of selectors, made when first needed. Bounded: beyond it all begin anew. */
export class Sights {
  readonly #sights = new Map<RouteConfig, Map<readonly SelectConfig[], Sight | null>>();
  #count = 0;
  #kept: Kept = { models: 0 };

  constructor(
    private readonly limit = LIMIT,
    private readonly keptLimit = KEPT_LIMIT,
  ) {}

  /** Null where nothing is hidden and nothing is in another order: the common case without consumers and routes. */
  of(route: RouteConfig, caller: Selecting | null): Sight | null {
    if (this.#kept.models >= this.keptLimit) this.#clear();
    const selects = caller === null ? NOBODY : caller.selects;
    const sight = this.#sights.get(route)?.get(selects);
    return sight === undefined ? this.#begin(route, selects) : sight;
  }

  /** How many are kept. */
  get size(): number {
    return this.#count;
  }

  #begin(route: RouteConfig, selects: readonly SelectConfig[]): Sight | null {
    if (this.#count >= this.limit) this.#clear();
    const all = [route.select, ...selects];
    const pick = (kind: 'models' | 'upstreams'): LabelSelector[] =>
      all.flatMap((select) => select[kind] ?? []);
    const selectors = { models: pick('models'), upstreams: pick('upstreams') };
    const hidesNothing = selectors.models.length === 0 && selectors.upstreams.length === 0;
    const sight =
      hidesNothing && isPlain(route) ? null : new Sight(route, selectors, Math.random, this.#kept);
    const ofRoute = this.#sights.get(route) ?? new Map<readonly SelectConfig[], Sight | null>();
    this.#sights.set(route, ofRoute.set(selects, sight));
    if (sight !== null) this.#count++;
    return sight;
  }

  #clear(): void {
    this.#sights.clear();
    this.#count = 0;
    // Requests that run still hold old ones, which count for nothing any more.
    this.#kept = { models: 0 };
  }
}

function isPlain({ upstreams, maxAttempts }: RouteConfig): boolean {
  return upstreams === null && maxAttempts === Infinity;
}
