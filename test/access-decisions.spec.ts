import 'reflect-metadata';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GatewayError } from '../src/common/errors/gateway-error.js';
import { JsonDocument } from '../src/common/json/json-document.js';
import { ConfigStore } from '../src/config/config.store.js';
import { loadConfig } from '../src/config/loader/load-config.js';
import { ConsumerRegistry } from '../src/consumers/consumer.registry.js';
import { IssuedIds } from '../src/consumers/issued-ids.js';
import type { ClaimDesk } from '../src/gateway/claim-desk.js';
import { ConsumerDesk } from '../src/gateway/consumer-desk.js';
import { GatewayExchange } from '../src/gateway/gateway-exchange.js';
import type { QuotaDesk } from '../src/gateway/quota-desk.js';
import { type Arrival, Resolution } from '../src/gateway/resolution.js';
import { RouteTable } from '../src/http/route-table.js';
import type { GatewayLog } from '../src/observability/log/gateway-log.js';
import type { GatewayMetrics } from '../src/observability/metrics/gateway.metrics.js';
import type { QuotaRegistry } from '../src/quotas/quota.registry.js';
import type { PolicyExplorer } from '../src/routing/policy.explorer.js';
import { RoutingService } from '../src/routing/routing.service.js';
import type { ConcurrencyService } from '../src/upstreams/concurrency/concurrency.service.js';
import type { Upstream } from '../src/upstreams/upstream.js';
import type { UpstreamRegistry } from '../src/upstreams/upstream.registry.js';

/**
 * Who gets what: files and requests by chance, decided by the service and by a naive reading of docs/access.md that
 * shares nothing with it but the file.
 */
const NOW = Date.UTC(2027, 0, 15);
const PAST = '2027-01-14';
const TODAY = '2027-01-15';

interface Key {
  id: string;
  value: string;
  disabled: boolean;
  expires?: string;
  select: Select;
}
interface Consumer {
  id: string;
  disabled: boolean;
  max: number;
  keys: Key[];
  select: Select;
  team: string;
}
interface Select {
  routes?: string;
  models?: string;
  upstreams?: string;
  consumers?: string;
}
interface UpstreamEntry {
  id: string;
  provider: string;
  region?: string;
  disabled: boolean;
  protocol: string;
  serves: readonly string[];
}
interface Model {
  name: string;
  upstreams: string[];
  disabled: boolean;
  stage?: string;
}
interface Route {
  id: string;
  path: string;
  disabled: boolean;
  upstreams?: string[];
  select: Select;
  kind?: string;
}
interface World {
  providers: { id: string; disabled: boolean }[];
  upstreams: UpstreamEntry[];
  models: Model[];
  consumers: Consumer[] | null;
  routes: Route[] | null;
  fallback: string | null;
} // prettier-ignore
interface Ask { path: string; method: string; key: string | null; model: string | null; draining: boolean; busy: boolean; type: string } // prettier-ignore

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
  providers: fc.tuple(rarely, rarely).map((off) => off.map((disabled, i) => ({ id: `p${i + 1}`, disabled }))),
  upstreams: fc
    .array(fc.record({ provider: one('p1', 'p2'), region: maybe(one('eu', 'us')), disabled: rarely, protocol: one('chat-completions', 'messages'), serves: one(['chat'], ['embeddings'], ['chat', 'embeddings']) }), { minLength: 2, maxLength: 4 })
    .map((list) => list.map((entry, i) => ({ id: `u${i + 1}`, ...entry }))),
  models: fc
    .array(fc.record({ picks: fc.array(fc.nat(3), { minLength: 1, maxLength: 4 }), disabled: rarely, stage: maybe(one('beta', 'ga')) }), { minLength: 1, maxLength: 3 })
    .map((list) => list.map(({ picks, ...entry }, i) => ({ name: `m${i + 1}`, upstreams: picks.map((n) => `u${n + 1}`), ...entry }))),
  consumers: fc.option(
    fc.array(fc.record({ disabled: rarely, max: one(0, 1, 1), select, team: one('red', 'blue'), keys: fc.array(fc.record({ disabled: rarely, expires: maybe(one(PAST, TODAY)), select }), { minLength: 1, maxLength: 2 }) }), { maxLength: 2 })
      .map((list) => list.map((entry, i) => ({ id: `c${i + 1}`, ...entry, keys: entry.keys.map((key, k) => ({ id: `k${k + 1}`, value: `key-${i + 1}-${k + 1}`, ...key })) }))),
    { nil: null },
  ),
  routes: fc.option(
    fc.uniqueArray(fc.record({ path: one('/v1', '/team', '/v1/team', '/'), disabled: rarely, upstreams: maybe(fc.uniqueArray(one('u1', 'u2'), { minLength: 1 })), kind: maybe(one('chat', 'batch')), select: fc.record({ models: maybe(modelSelector), upstreams: maybe(upstreamSelector), consumers: maybe(one('team=red', 'sys/consumer!=c1', 'sys/key=k1')) }) }), { minLength: 1, maxLength: 3, selector: ({ path }) => path })
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
  path: fc.tuple(one('/v1', '/team', '/v1/team', '', '/other', '/team/v1', '/v1/../team', '/v1/%2e%2e/team'), one('/chat/completions', '/messages', '/embeddings', '/nothing')).map((parts) => parts.join('')),
  method: one('POST', 'POST', 'POST', 'POST', 'PUT'),
  key: fc.option(one('key-1-1', 'key-1-2', 'key-2-1', 'key-2-2', 'nobody'), { nil: null, freq: 8 }),
  model: fc.option(one('m1', 'm2', 'm3', 'none', 'u1'), { nil: null, freq: 12 }),
  draining: rarely,
  busy: fc.boolean(),
  type: one('application/json', 'application/json', 'application/json', 'text/plain'),
}); // prettier-ignore

function fileOf({ providers, upstreams, models, consumers, routes, fallback }: World): object {
  const labelled = (labels: Record<string, string | undefined>) => ({ labels: Object.fromEntries(Object.entries(labels).filter(([, value]) => value !== undefined)) });
  return JSON.parse(JSON.stringify({
    server: { metrics_token: 'token-of-the-metrics' },
    providers: providers.map((entry) => ({ ...entry, url: 'http://127.0.0.1:9/v1' })),
    upstreams: upstreams.map(({ region, ...entry }) => ({ ...entry, model: 'real', ...labelled({ region }) })),
    models: models.map(({ stage, ...entry }) => ({ ...entry, ...labelled({ stage }) })),
    ...(consumers === null ? {} : { consumers: consumers.map(({ max, team, ...entry }) => ({ ...entry, max_concurrency: max, ...labelled({ team }) })) }),
    ...(routes === null ? {} : { routes: routes.map(({ kind, ...entry }) => ({ ...entry, ...labelled({ kind }) })) }),
    ...(fallback === null ? {} : { default_model: fallback }),
  })) as object;
} // prettier-ignore

// ---- the service

interface Service {
  readonly table: RouteTable;
  readonly routing: RoutingService;
  readonly resolution: Resolution;
}

function serviceOf(file: World): Service {
  const loaded = loadConfig({ text: JSON.stringify(fileOf(file)) }, {});
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const { upstreams, routes } = loaded.config;
  const store = new ConfigStore(loaded.config);
  const get = (id: string) => ({ id, config: upstreams.find((upstream) => upstream.id === id) }) as Upstream;
  const routing = new RoutingService(
    store,
    { get } as unknown as UpstreamRegistry,
    {} as PolicyExplorer,
    {} as GatewayMetrics,
    { defaulted: () => {} } as unknown as GatewayLog,
    { gateOf: () => null, gateOfKey: () => null },
  );
  routing.onModuleInit();
  const limits = new ConsumerDesk(
    { now: () => 0 },
    {} as QuotaRegistry,
    {} as QuotaDesk,
    {} as ClaimDesk,
    {} as ConcurrencyService,
    null,
  );
  const consumers = new ConsumerRegistry(store);
  const resolution = new Resolution(store, consumers, routing, new IssuedIds(), limits, () => NOW);
  return { table: new RouteTable(routes), routing, resolution };
}

function decided({ table, routing, resolution }: Service, asked: Ask): string {
  const destination = table.resolve(asked.path) ?? null;
  const headers = { 'content-type': asked.type, ...(asked.key === null ? {} : { 'x-api-key': asked.key }) };
  const arrival: Arrival = {
    draining: asked.draining,
    destination,
    method: asked.method,
    preflight: false,
    headers,
    rawHeaders: [],
    caller: null,
    explains: false,
  };
  const error = resolution.beforeBody(arrival);
  if (error !== null) return error.code;
  const operation = destination?.endpoint.operation;
  if (!destination || !operation) throw new Error('unreachable');
  const { caller } = arrival;
  const slots = caller?.slots ?? null;
  const busy = asked.busy && slots !== null && slots.limit !== Infinity && slots.take();
  const held = slots?.active ?? 0;
  const body = JsonDocument.parse(
    Buffer.from(JSON.stringify(asked.model === null ? {} : { model: asked.model })),
  );
  const exchange = new GatewayExchange({
    id: 'r',
    headers,
    passedHeaders: [],
    contentType: asked.type,
    query: '',
    body,
    form: null,
    operation,
    startedAt: 0,
    caller,
    route: destination.route,
  });
  try {
    const route = resolution.withBody(exchange);
    expect(resolution.consumerLimits(exchange)).toBeNull();
    const plan = routing.plan(route, exchange, exchange.sight);
    const listed = [...routing.visible(exchange.sight)].map(({ name }) => name);
    const candidates = plan.candidates.map(({ upstream }) => upstream.id);
    return `${route.model.name}: ${candidates.join()} (sees ${listed.join()})`;
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown.code;
    throw thrown;
  } finally {
    // However often it is told.
    resolution.leave(exchange);
    resolution.leave(exchange);
    expect(slots?.active ?? 0).toBe(held);
    if (busy) slots.giveBack();
  }
}

// ---- the naive reading

type Labels = Record<string, string | undefined>;

function fits(selector: string | undefined, labels: Labels): boolean {
  if (selector === undefined) return true;
  const list = /^(\S+) (in|notin) \((.*)\)$/.exec(selector);
  if (list) return list[3]!.split(',').includes(labels[list[1]!] ?? ' ') === (list[2] === 'in');
  if (selector.includes('!=')) return labels[selector.split('!=')[0]!] !== selector.split('!=')[1];
  if (selector.includes('=')) return labels[selector.split('=')[0]!] === selector.split('=')[1];
  return selector.startsWith('!') ? labels[selector.slice(1)] === undefined : labels[selector] !== undefined;
}

const ENDPOINTS: Record<string, { protocol?: string; capability: string }> = {
  '/chat/completions': { protocol: 'chat-completions', capability: 'chat' },
  '/messages': { protocol: 'messages', capability: 'chat' },
  '/embeddings': { capability: 'embeddings' },
};

function found(file: World, path: string): { route: Route; endpoint: string } | undefined {
  if (/\/(\.|%2e)/i.test(path)) return undefined;
  const routes = file.routes ?? [{ id: 'default', path: '/v1', disabled: false, select: {} }];
  const inside = (route: Route) => path.startsWith(route.path === '/' ? '/' : `${route.path}/`);
  const longest = routes.filter(inside).sort((a, b) => b.path.length - a.path.length)[0];
  const route = longest ?? routes.find((entry) => entry.path === '/v1');
  if (!route || route.disabled) return undefined;
  const rest = longest === undefined || route.path === '/' ? path : path.slice(route.path.length);
  for (const endpoint of Object.keys(ENDPOINTS)) if (rest === endpoint || rest === `/v1${endpoint}`) return { route, endpoint };
  return undefined;
} // prettier-ignore

function naive(file: World, asked: Ask): string {
  if (asked.draining) return 'shutting_down';
  const place = found(file, asked.path);
  if (place === undefined) return 'unknown_path';
  if (asked.method !== 'POST') return 'method_not_allowed';
  const { route } = place;
  let consumer: Consumer | undefined;
  let key: Key | undefined;
  if (file.consumers !== null) {
    if (asked.key === null) return 'missing_api_key';
    consumer = file.consumers.find(({ keys }) => keys.some(({ value }) => value === asked.key));
    key = consumer?.keys.find(({ value }) => value === asked.key);
    if (!consumer || !key) return 'invalid_api_key';
    if (key.disabled) return 'api_key_disabled';
    if (key.expires === PAST) return 'api_key_expired';
    if (consumer.disabled) return 'consumer_disabled';
    const routeLabels = { kind: route.kind, 'sys/route': route.id };
    const callerLabels = { team: consumer.team, 'sys/consumer': consumer.id, 'sys/key': key.id };
    if (!fits(consumer.select.routes, routeLabels) || !fits(key.select.routes, routeLabels)) return 'route_not_allowed';
    if (!fits(route.select.consumers, callerLabels)) return 'route_not_allowed';
  }
  if (asked.type !== 'application/json') return 'unsupported_media_type';
  if (asked.model === null) return 'missing_model';
  const selects = [route.select, consumer?.select, key?.select];
  const off = (id: string) => {
    const upstream = file.upstreams.find((entry) => entry.id === id)!;
    return upstream.disabled || file.providers.find((entry) => entry.id === upstream.provider)!.disabled;
  };
  const seen = (name: string | null): UpstreamEntry[] => {
    const model = file.models.find((entry) => entry.name === name);
    if (!model || model.disabled) return [];
    if (!selects.every((some) => fits(some?.models, { stage: model.stage, 'sys/model': model.name }))) return [];
    return model.upstreams
      .filter((id) => !off(id) && (route.upstreams?.includes(id) ?? true))
      .map((id) => file.upstreams.find((entry) => entry.id === id)!)
      .filter(({ id, provider, protocol, region }) =>
        selects.every((some) => fits(some?.upstreams, { region, 'sys/upstream': id, 'sys/provider': provider, 'sys/protocol': protocol, 'sys/model': 'real' })),
      ); // prettier-ignore
  };
  const name = seen(asked.model).length > 0 ? asked.model : file.fallback;
  const candidates = seen(name);
  if (candidates.length === 0) return 'model_not_found';
  const { protocol, capability } = ENDPOINTS[place.endpoint]!;
  const speaking = candidates.filter((entry) => entry.serves.includes(capability) && (protocol === undefined || entry.protocol === protocol));
  if (speaking.length === 0) return 'unsupported_protocol';
  if (consumer && consumer.max === 1 && asked.busy) return 'consumer_busy';
  const listed = file.models.filter((model) => seen(model.name).length > 0).map((model) => model.name);
  return `${name}: ${speaking.map(({ id }) => id).join()} (sees ${listed.join()})`;
} // prettier-ignore

describe('who gets what', () => {
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
    const samples = fc.sample(fc.tuple(world, ask), { seed: 3, numRuns: 5000 });
    const outcomes = new Set(
      samples.map(([file, asked]) => naive(file, asked).replace(/^.*:.*$/, 'answered')),
    );
    expect([...outcomes].sort()).toEqual([
      'answered', 'api_key_disabled', 'api_key_expired', 'consumer_busy', 'consumer_disabled', 'invalid_api_key', 'method_not_allowed',
      'missing_api_key', 'missing_model', 'model_not_found', 'route_not_allowed', 'shutting_down', 'unknown_path', 'unsupported_media_type', 'unsupported_protocol',
    ]); // prettier-ignore
  });
});
