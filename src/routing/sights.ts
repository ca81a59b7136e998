import type { LabelSelector } from '../common/selector/label-selector.js';
import type { RouteConfig, SelectConfig } from '../config/access-config.js';
import { Sight } from './sight.js';

/** Thousands of consumers share a few selectors; whoever has one of his own must not cost memory for ever. */
const LIMIT = 1000;

/** The part of a caller that decides what it sees. */
export interface Selecting {
  readonly config: { readonly select: SelectConfig };
  readonly keyConfig: { readonly select: SelectConfig };
}

/** One {@link Sight} for each route and combination of selectors, made when first needed, at most a thousand. */
export class Sights {
  readonly #sights = new Map<RouteConfig, Map<string, Sight>>();
  readonly #keys = new WeakMap<Selecting, string>();
  #count = 0;

  constructor(private readonly limit = LIMIT) {}

  /** Null where nothing is hidden and nothing is in another order: the common case without consumers and routes. */
  of(route: RouteConfig, caller: Selecting | null): Sight | null {
    const key = caller === null ? '' : this.#keyOf(caller);
    if (key === '' && isPlain(route)) return null;
    const ofRoute = this.#sights.get(route);
    const sight = ofRoute?.get(key);
    return sight ?? this.#make(route, caller, key);
  }

  /** How many are kept. */
  get size(): number {
    return this.#count;
  }

  #make(route: RouteConfig, caller: Selecting | null, key: string): Sight {
    if (this.#count >= this.limit) {
      this.#sights.clear();
      this.#count = 0;
    }
    const selects = [
      route.select,
      ...(caller === null ? [] : [caller.config.select, caller.keyConfig.select]),
    ];
    const pick = (kind: 'models' | 'upstreams'): LabelSelector[] =>
      selects.flatMap((select) => select[kind] ?? []);
    const sight = new Sight(route, { models: pick('models'), upstreams: pick('upstreams') });
    const ofRoute = this.#sights.get(route) ?? new Map<string, Sight>();
    this.#sights.set(route, ofRoute.set(key, sight));
    this.#count++;
    return sight;
  }

  /** The texts of the selectors; '' where there is none. */
  #keyOf(caller: Selecting): string {
    let key = this.#keys.get(caller);
    if (key === undefined) {
      const texts = [caller.config.select, caller.keyConfig.select].flatMap(({ models, upstreams }) => [
        models?.text ?? null,
        upstreams?.text ?? null,
      ]);
      key = texts.every((text) => text === null) ? '' : JSON.stringify(texts);
      this.#keys.set(caller, key);
    }
    return key;
  }
}

function isPlain({ upstreams, select, maxAttempts }: RouteConfig): boolean {
  return (
    upstreams === null && select.models === null && select.upstreams === null && maxAttempts === Infinity
  );
}
