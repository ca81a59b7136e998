import { describe, expect, it } from 'vitest';
import { LabelSelector } from '../common/selector/label-selector.js';
import { IMPLICIT_ROUTE, type RouteConfig, type SelectConfig } from '../config/access-config.js';
import type { ModelConfig, ModelEntryConfig } from '../config/gateway-config.js';
import type { Upstream } from '../upstreams/upstream.js';
import type { Candidate } from './candidate.js';
import { ModelRoute } from './model-route.js';
import { Sight } from './sight.js';
import { Sights } from './sights.js';

const select = (text: string): LabelSelector => LabelSelector.parse(text);
function model(name: string, labels: Record<string, string>, ids: readonly string[]): ModelRoute {
  const config = {
    name,
    labels: new Map(Object.entries(labels)),
    maxAttempts: Infinity,
  } as unknown as ModelConfig;
  const candidates = ids.map((id): Candidate => {
    const labelsOf = new Map([['id', id], ['kind', id < 'c' ? 'own' : 'paid']]); // prettier-ignore
    return {
      model: config,
      entry: { tier: 1 } as ModelEntryConfig,
      upstream: { id, config: { labels: labelsOf } } as unknown as Upstream,
      gates: null,
    };
  });
  return new ModelRoute(config, candidates, null);
}
const ids = (route: ModelRoute | null): string =>
  route?.candidates.map(({ upstream }) => upstream.id).join('') ?? '-';
const route = (more: Partial<RouteConfig>): RouteConfig => ({ ...IMPLICIT_ROUTE, ...more });
const bound = (...list: (readonly [string, number?, number?])[]): Partial<RouteConfig> => ({
  upstreams: list.map(([upstream, priority = 1, weight]) => ({ upstream, priority, weight: weight ?? null })),
});
const ALL = { models: [], upstreams: [] };

describe('Sight', () => {
  const m = model('m', { team: 'red' }, ['a', 'b', 'c']);

  it('gives the very model where nothing of it is hidden', () => {
    expect(new Sight(route({}), ALL).narrow(m)).toBe(m);
    expect(new Sight(route(bound(['c'], ['b'], ['a'], ['x'])), ALL).narrow(m)).toBe(m);
  });

  it('keeps what the route binds and all selectors leave, in the order of the model', () => {
    expect(ids(new Sight(route(bound(['c'], ['a'])), ALL).narrow(m))).toBe('ac');
    const both = { models: [], upstreams: [select('kind=own'), select('id!=a')] };
    expect(ids(new Sight(route({}), both).narrow(m))).toBe('b');
    expect(ids(new Sight(route(bound(['a'])), both).narrow(m))).toBe('-');
  });

  it('hides a model whose labels a selector does not take, but not what is addressed directly', () => {
    const blue = new Sight(route({}), { models: [select('team=blue')], upstreams: [select('id=b')] });
    expect(blue.narrow(m)).toBeNull();
    expect(ids(blue.narrowDirect(m))).toBe('b');
  });

  const arranged = (more: Partial<RouteConfig>, random = () => 0): string => {
    const plan = new Sight(route(more), ALL, random).arrange(m.listed);
    return plan.candidates.map(({ upstream }) => upstream.id).join('');
  };

  it('gives the very plan where the route has neither an order nor a limit', () => {
    expect(new Sight(route(bound(['b'], ['a'], ['c'])), ALL).arrange(m.listed)).toBe(m.listed);
  });

  it('takes a low priority first, and the order of the model inside one', () => {
    expect(arranged(bound(['a', 3], ['b', 1], ['c', 2]))).toBe('bca');
    expect(arranged(bound(['a', 2], ['b', 2], ['c', -1]))).toBe('cab');
  });

  it('draws by weight inside a priority that has one, where others count 1', () => {
    // Of 3 + 1 = 4 parts the first three are a's.
    expect(arranged(bound(['a', 1, 3], ['b', 1], ['c', 2]), () => 0.74)).toBe('abc');
    expect(arranged(bound(['a', 1, 3], ['b', 1], ['c', 2]), () => 0.76)).toBe('bac');
    expect(arranged(bound(['a', 2], ['b', 2], ['c', 1, 5]), () => 0.99)).toBe('cab');
  });

  it('tells the shares of the weights', () => {
    const first = { a: 0, b: 0, c: 0 } as Record<string, number>;
    let seed = 1;
    const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
    const sight = new Sight(route(bound(['a', 1, 6], ['b', 1, 3], ['c', 1, 1])), ALL, random);
    for (let i = 0; i < 5000; i++) {
      const id = sight.arrange(m.listed).candidates[0]?.upstream.id ?? '';
      first[id] = (first[id] ?? 0) + 1;
    }
    expect(Object.values(first).map((count) => Math.round(count / 500))).toEqual([6, 3, 1]);
  });

  it('limits attempts to the smaller of both', () => {
    expect(new Sight(route({ maxAttempts: 2 }), ALL).arrange(m.listed).maxAttempts).toBe(2);
    expect(
      new Sight(route({ maxAttempts: 2 }), ALL).arrange({ ...m.listed, maxAttempts: 1 }).maxAttempts,
    ).toBe(1);
  });
});

describe('Sights', () => {
  const none: SelectConfig = { routes: null, models: null, upstreams: null };
  const caller = (own: Partial<SelectConfig>, ofKey: Partial<SelectConfig> = {}) => ({
    selects: [
      { ...none, ...own },
      { ...none, ...ofKey },
    ],
  });

  it('has none where nothing is hidden: an open service, or a consumer without selectors', () => {
    const sights = new Sights();
    expect(sights.of(IMPLICIT_ROUTE, null)).toBeNull();
    expect(sights.of(IMPLICIT_ROUTE, caller({ routes: select('a') }))).toBeNull();
    expect(sights.size).toBe(0);
  });

  it('shares one among callers with the same list, and tells others apart', () => {
    const sights = new Sights();
    const { selects } = caller({ models: select('a') });
    const one = sights.of(IMPLICIT_ROUTE, { selects });
    expect(one).not.toBeNull();
    expect(sights.of(IMPLICIT_ROUTE, { selects })).toBe(one);
    expect(sights.of(route({}), { selects })).not.toBe(one);
    expect(sights.of(IMPLICIT_ROUTE, caller({ upstreams: select('a') }))).not.toBe(one);
  });

  it('is bounded, and forgets no more than work', () => {
    const sights = new Sights(10);
    for (let i = 0; i < 100; i++) {
      const sight = sights.of(
        IMPLICIT_ROUTE,
        caller({ upstreams: select(`id=${i % 2 === 0 ? 'a' : `x${i}`}`) }),
      );
      expect(ids(sight?.narrow(model('m', {}, ['a', 'b'])) ?? null)).toBe(i % 2 === 0 ? 'a' : '-');
      expect(sights.size).toBeLessThanOrEqual(10);
    }
  });

  it('is bounded by all that is worked out, not by the number alone', () => {
    const sights = new Sights(100, 20);
    const models = Array.from({ length: 10 }, (_, i) => model(`m${i}`, {}, ['a', 'b']));
    const who = { a: caller({ upstreams: select('id=a') }), b: caller({ upstreams: select('id=b') }) };
    const first = sights.of(IMPLICIT_ROUTE, who.a);
    for (const one of [...models, ...models]) expect(ids(first?.narrow(one) ?? null)).toBe('a');
    expect(sights.of(IMPLICIT_ROUTE, who.a)).toBe(first);
    const second = sights.of(IMPLICIT_ROUTE, who.b);
    for (const one of models) expect(ids(second?.narrow(one) ?? null)).toBe('b');
    const anew = sights.of(IMPLICIT_ROUTE, who.a);
    expect(anew).not.toBe(first);
    expect(sights.size).toBe(1);
    expect(ids(anew?.narrow(models[0] as ModelRoute) ?? null)).toBe('a');
  });
});
