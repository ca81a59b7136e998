import type { LabelSelector } from '../common/selector/label-selector.js';
import type { RouteConfig, SelectConfig } from '../config/access-config.js';
import { type Kept, Sight } from './sight.js';

/** Thousands of consumers may have selectors of their own, on several routes each; a sight alone is small. */
const LIMIT = 50_000;
/** What all of them together worked out: a list of ten thousand models is as many for one. */
const KEPT_LIMIT = 500_000;

/** The part of a caller that decides what it sees. */
export interface Selecting {
  readonly config: { readonly select: SelectConfig };
  readonly keyConfig: { readonly select: SelectConfig };
}

/** One {@link Sight} for each route and combination of selectors, made when first needed. Bounded: beyond it all begin anew. */
export class Sights {
  readonly #sights = new Map<RouteConfig, Map<string, Sight>>();
  /** What each caller got: thousands of them in turn meet cold memory with each step that finding it takes. */
  readonly #found = new Map<RouteConfig, WeakMap<Selecting, Sight | null>>();
  #count = 0;
  #kept: Kept = { models: 0 };

  constructor(
    private readonly limit = LIMIT,
    private readonly keptLimit = KEPT_LIMIT,
  ) {}

  /** Null where nothing is hidden and nothing is in another order: the common case without consumers and routes. */
  of(route: RouteConfig, caller: Selecting | null): Sight | null {
    if (this.#kept.models >= this.keptLimit) this.#clear();
    if (caller === null) return this.#find(route, null);
    let found = this.#found.get(route);
    if (found === undefined) this.#found.set(route, (found = new WeakMap()));
    let sight = found.get(caller);
    if (sight === undefined) {
      sight = this.#find(route, caller);
      // Looked up anew: it may have been one too many, and all began anew.
      this.#found.get(route)?.set(caller, sight);
    }
    return sight;
  }

  /** How many are kept. */
  get size(): number {
    return this.#count;
  }

  #find(route: RouteConfig, caller: Selecting | null): Sight | null {
    const key = caller === null ? '' : keyOf(caller);
    if (key === '' && isPlain(route)) return null;
    return this.#sights.get(route)?.get(key) ?? this.#make(route, caller, key);
  }

  #make(route: RouteConfig, caller: Selecting | null, key: string): Sight {
    if (this.#count >= this.limit) this.#clear();
    const selects = [
      route.select,
      ...(caller === null ? [] : [caller.config.select, caller.keyConfig.select]),
    ];
    const pick = (kind: 'models' | 'upstreams'): LabelSelector[] =>
      selects.flatMap((select) => select[kind] ?? []);
    const selectors = { models: pick('models'), upstreams: pick('upstreams') };
    const sight = new Sight(route, selectors, Math.random, this.#kept);
    const ofRoute = this.#sights.get(route) ?? new Map<string, Sight>();
    this.#sights.set(route, ofRoute.set(key, sight));
    this.#count++;
    return sight;
  }

  #clear(): void {
    this.#sights.clear();
    this.#found.clear();
    this.#count = 0;
    // Requests that run still hold old ones, which count for nothing any more.
    this.#kept = { models: 0 };
  }
}

/** The texts of the selectors; '' where there is none. */
function keyOf({ config, keyConfig }: Selecting): string {
  const texts = [config.select, keyConfig.select].flatMap(({ models, upstreams }) => [
    models?.text ?? null,
    upstreams?.text ?? null,
  ]);
  return texts.every((text) => text === null) ? '' : JSON.stringify(texts);
}

function isPlain({ upstreams, select, maxAttempts }: RouteConfig): boolean {
  return (
    upstreams === null && select.models === null && select.upstreams === null && maxAttempts === Infinity
  );
}
