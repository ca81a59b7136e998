import 'reflect-metadata';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Ask, decided, naive, PAST, serviceOf, TODAY, type World } from './support/access-decisions.js';

const OUTCOMES = [
      'answered', 'api_key_disabled', 'api_key_expired', 'consumer_busy', 'consumer_disabled', 'invalid_api_key', 'method_not_allowed',
      'missing_api_key', 'missing_model', 'model_not_found', 'route_not_allowed', 'shutting_down', 'unknown_path', 'unsupported_media_type', 'unsupported_protocol',

]; // prettier-ignore

// ---- by chance

const one = fc.constantFrom;
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });
const upstreamSelector = one(
  'region=eu',
  'region!=eu',
  '!region',
  'region in (eu,us)',
  'sys/upstream notin (u1)',
  'sys/protocol=messages',
  'sys/provider=p1',
);
const modelSelector = one('stage=beta', '!stage', 'stage notin (beta)', 'sys/model=m1', 'sys/model!=m1');
const routeSelector = one('kind=chat', 'kind!=chat', '!kind', 'sys/route=r1');
const select = fc.record({
  routes: maybe(routeSelector),
  models: maybe(modelSelector),
  upstreams: maybe(upstreamSelector),
});
const rarely = fc.integer({ min: 0, max: 5 }).map((n) => n === 0);

const world: fc.Arbitrary<World> = fc.record({
  providers: fc.tuple(rarely, rarely).map((off) => off.map((disabled, i) => ({ id: `p${i + 1}`, disabled }))).chain((list) => fc.tuple(...list.map((entry) => maybe(one('eu', 'us')).map((region) => ({ ...entry, ...(region === undefined ? {} : { region }) }))))),
  direct: fc.boolean(),
  upstreams: fc
    .array(fc.record({ provider: one('p1', 'p2'), region: maybe(one('eu', 'us')), disabled: rarely, protocol: one('chat-completions', 'messages'), serves: one(['chat'], ['embeddings'], ['chat', 'embeddings']) }), { minLength: 2, maxLength: 4 })
    .map((list) => list.map((entry, i) => ({ id: `u${i + 1}`, ...entry }))),
  models: fc
    .array(fc.record({ picks: fc.array(fc.nat(3), { minLength: 1, maxLength: 4 }), disabled: rarely, stage: maybe(one('beta', 'ga')) }), { minLength: 1, maxLength: 3 })
    .map((list) => list.map(({ picks, ...entry }, i) => ({ name: `m${i + 1}`, upstreams: picks.map((n) => `u${n + 1}`), ...entry }))),
  consumers: fc.option(
    fc.array(fc.record({ disabled: rarely, direct: fc.boolean(), max: one(0, 1, 1), select, team: one('red', 'blue'), keys: fc.array(fc.record({ disabled: rarely, expires: maybe(one(PAST, TODAY)), select, team: maybe(one('red', 'blue')) }), { minLength: 1, maxLength: 2 }) }), { maxLength: 2, size: 'max' })
      .map((list) => list.map((entry, i) => ({ id: `c${i + 1}`, ...entry, keys: entry.keys.map((key, k) => ({ id: `k${k + 1}`, value: `key-${i + 1}-${k + 1}`, ...key })) }))),
    { nil: null },
  ),
  routes: fc.option(
    fc.uniqueArray(fc.record({ path: one('/v1', '/team', '/v1/team', '/'), disabled: rarely, upstreams: maybe(fc.uniqueArray(fc.record({ upstream: one('u1', 'u2'), priority: one(1, 2, 2, 3) }), { minLength: 1, selector: ({ upstream }) => upstream })), kind: maybe(one('chat', 'batch')), select: fc.record({ models: maybe(modelSelector), upstreams: maybe(upstreamSelector), consumers: maybe(one('team=red', 'sys/consumer!=c1', 'sys/key=k1')) }) }), { minLength: 1, maxLength: 3, selector: ({ path }) => path })
      .map((list) => list.map((entry, i) => ({ id: `r${i + 1}`, ...entry }))),
    { nil: null },
  ),
  fallback: fc.option(one('m1', 'm2'), { nil: null, freq: 3 }),
}).map((made) => {
  const known = new Set(made.upstreams.map(({ id }) => id));
  const models = made.models.map((entry) => ({ ...entry, upstreams: [...new Set(entry.upstreams)].filter((id) => known.has(id)) }));
  return { ...made, models: models.map((entry) => (entry.upstreams.length > 0 ? entry : { ...entry, upstreams: ['u1'] })), fallback: models.some(({ name }) => name === made.fallback) ? made.fallback : null };
}); // prettier-ignore
const ask: fc.Arbitrary<Ask> = fc.record({
  path: fc.tuple(one('/v1', '/v1', '/v1', '/v1', '/team', '/v1/team', '', '/other', '/team/v1', '/v1/../team', '/v1/%2e%2e/team'), one('/chat/completions', '/chat/completions', '/messages', '/embeddings', '/nothing')).map((parts) => parts.join('')),
  method: one('POST', 'POST', 'POST', 'POST', 'PUT'),
  key: fc.option(one('key-1-1', 'key-1-1', 'key-1-2', 'key-2-1', 'key-2-2', 'nobody'), { nil: null, freq: 8 }),
  model: fc.option(one('m1', 'm1', 'm1', 'm2', 'm3', 'none', 'u1', 'p1/real', 'p2:real', 'p1/none'), { nil: null, freq: 12 }),
  draining: rarely,
  busy: fc.boolean(),
  type: one('application/json', 'application/json', 'application/json', 'text/plain'),
}); // prettier-ignore

// ---- one by one

const all = (id: string, more: Partial<World['providers'][number]> = {}) => ({
  id,
  disabled: false,
  ...more,
});
const speaks = (provider: string, protocol = 'chat-completions', serves = ['chat']) => ({ provider, protocol, serves, disabled: false }); // prettier-ignore
const caller = (id: string, team: string, more: object = {}, key: object = {}) => ({
  id, team, disabled: false, direct: false, max: 0, select: {}, ...more,
  keys: [{ id: 'k', value: `key-${id}`, disabled: false, select: {}, ...key }],
}); // prettier-ignore
const BASE = {
  providers: [all('p1', { region: 'eu' }), all('p2'), all('p3', { disabled: true })],
  upstreams: [
    { id: 'u1', ...speaks('p1') },
    { id: 'u2', ...speaks('p2', 'messages'), region: 'us' },
    { id: 'u3', ...speaks('p2', 'chat-completions', ['chat', 'embeddings']) },
    { id: 'u4', ...speaks('p1'), disabled: true },
    { id: 'u5', ...speaks('p3') },
  ],
  models: [
    { name: 'm1', upstreams: ['u1', 'u2', 'u3', 'u4', 'u5'], disabled: false },
    { name: 'm2', upstreams: ['u2', 'u3'], disabled: false, stage: 'beta' },
    { name: 'm3', upstreams: ['u4', 'u5'], disabled: false },
    { name: 'm4', upstreams: ['u1'], disabled: true },
  ],
};
const CALLERS = [
  caller('any', 'red'),
  caller(
    'ga',
    'red',
    { direct: true, select: { models: '!stage' } },
    { select: { upstreams: 'region!=us' } },
  ),
  caller('eu', 'blue', { max: 1, select: { upstreams: 'region=eu' } }, { expires: TODAY }),
  caller('chat', 'blue', { select: { routes: 'kind=chat' } }, { team: 'red' }),
  caller('off', 'red', { disabled: true }),
  caller('lost', 'red', {}, { disabled: true }),
  caller('old', 'red', {}, { expires: PAST }),
];
const ROUTES = [
  { id: 'r1', path: '/v1', disabled: false, select: {} },
  { id: 'r2', path: '/team', disabled: false, kind: 'chat', select: { consumers: 'team!=blue' }, upstreams: [{ upstream: 'u1', priority: 2 }, { upstream: 'u3', priority: 1 }] },
  { id: 'r3', path: '/v1/deep', disabled: false, select: { models: 'stage=beta', upstreams: 'sys/upstream notin (u3)' } },
  { id: 'r4', path: '/off', disabled: true, select: {} },
]; // prettier-ignore

function* product<T extends Record<string, readonly unknown[]>>(
  of: T,
): Generator<{ [K in keyof T]: T[K][number] }> {
  const [first, ...others] = Object.keys(of);
  if (first === undefined) {
    yield {} as { [K in keyof T]: T[K][number] };
    return;
  }
  const rest = Object.fromEntries(others.map((key) => [key, of[key]])) as unknown as T;
  for (const value of of[first] ?? []) for (const more of product(rest)) yield { ...more, [first]: value };
}

const WORLDS = [
  ...product({
    consumers: [null, [], CALLERS] as const,
    routes: [null, ROUTES] as const,
    fallback: [null, 'm1'] as const,
    direct: [false, true] as const,
  }),
].map((made) => ({ ...BASE, ...made }) as unknown as World);

const ORDINARY = { draining: false, method: 'POST', type: 'application/json' };
const ASKS: Ask[] = [
  ...product({
    prefix: ['/v1', '/team', '/team/v1', '/v1/deep', '', '/off', '/v1/../team', '/other'],
    endpoint: ['/chat/completions', '/messages', '/embeddings', '/nothing'],
    key: [null, 'nobody', ...CALLERS.map(({ id }) => `key-${id}`)],
    model: [null, 'm1', 'm2', 'm3', 'm4', 'none', 'p1/real', 'p2:real'],
    busy: [false, true],
    state: [ORDINARY, { ...ORDINARY, draining: true }, { ...ORDINARY, method: 'PUT' }, { ...ORDINARY, type: 'text/plain' }],
  }),
]
  // What is refused before the model is asked for need not be asked for every model.
  .filter(({ state, model, busy }) => state === ORDINARY || (model === 'm1' && busy))
  .map(({ prefix, endpoint, state, ...more }) => ({ path: prefix + endpoint, ...state, ...more })); // prettier-ignore

describe('who gets what', () => {
  it.each(WORLDS.map((file, i) => [i, file] as const))(
    'is decided as the naive reading decides it, request by request, in file %i',
    (_, file) => {
      const service = serviceOf(file);
      for (const asked of ASKS) {
        const [given, wanted] = [decided(service, asked), naive(file, asked)];
        if (given !== wanted) expect({ asked, given }).toEqual({ asked, given: wanted });
      }
    },
  );

  it('and that table is large, and holds every outcome', () => {
    expect(WORLDS.length * ASKS.length).toBeGreaterThan(100_000);
    const outcomes = new Set<string>();
    for (const file of WORLDS) for (const asked of ASKS) outcomes.add(naive(file, asked).replace(/^.*:.*$/, 'answered'));
    expect([...outcomes].sort()).toEqual(OUTCOMES);
  }); // prettier-ignore

  it('is decided as the naive reading decides it', () => {
    fc.assert(
      fc.property(world, fc.array(ask, { minLength: 8, maxLength: 8 }), (file, asks) => {
        const service = serviceOf(file);
        for (const asked of asks) expect(decided(service, asked)).toBe(naive(file, asked));
      }),
      { numRuns: 300 },
    );
  });

  it('and every outcome is among what chance brings', () => {
    const samples = fc.sample(fc.tuple(world, ask), { seed: 4, numRuns: 15_000 });
    const outcomes = new Set(
      samples.map(([file, asked]) => naive(file, asked).replace(/^.*:.*$/, 'answered')),
    );
    expect([...outcomes].sort()).toEqual(OUTCOMES);
  });
});
