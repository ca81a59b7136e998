import 'reflect-metadata';
import { expect } from 'vitest';
import { GatewayError } from '../../src/common/errors/gateway-error.js';
import { JsonDocument } from '../../src/common/json/json-document.js';
import { ConfigStore } from '../../src/config/config.store.js';
import { loadConfig } from '../../src/config/loader/load-config.js';
import { ConsumerRegistry } from '../../src/consumers/consumer.registry.js';
import { IssuedIds } from '../../src/consumers/issued-ids.js';
import type { ClaimDesk } from '../../src/gateway/claim-desk.js';
import { ConsumerDesk } from '../../src/gateway/consumer-desk.js';
import { GatewayExchange } from '../../src/gateway/gateway-exchange.js';
import type { QuotaDesk } from '../../src/gateway/quota-desk.js';
import { type Arrival, Resolution } from '../../src/gateway/resolution.js';
import { RouteTable } from '../../src/http/route-table.js';
import type { GatewayLog } from '../../src/observability/log/gateway-log.js';
import type { GatewayMetrics } from '../../src/observability/metrics/gateway.metrics.js';
import type { QuotaRegistry } from '../../src/quotas/quota.registry.js';
import type { PolicyExplorer } from '../../src/routing/policy.explorer.js';
import { RoutingService } from '../../src/routing/routing.service.js';
import type { ConcurrencyService } from '../../src/upstreams/concurrency/concurrency.service.js';
import type { Upstream } from '../../src/upstreams/upstream.js';
import type { UpstreamRegistry } from '../../src/upstreams/upstream.registry.js';

/**
 * Who gets what: decided by the service, and by a naive reading of docs/access.md that shares nothing with it but the file.
 */
export const NOW = Date.UTC(2027, 0, 15);
export const PAST = '2027-01-14';
export const TODAY = '2027-01-15';

interface Key {
  id: string;
  value: string;
  disabled: boolean;
  expires?: string;
  select: Select;
  /** As a label; wins over the consumer's. */
  team?: string;
}
interface Consumer {
  id: string;
  direct: boolean;
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
  upstreams?: { upstream: string; priority: number }[];
  select: Select;
  kind?: string;
}
export interface World {
  providers: { id: string; disabled: boolean; region?: string }[];
  /** `server.direct`. */
  direct: boolean;
  upstreams: UpstreamEntry[];
  models: Model[];
  consumers: Consumer[] | null;
  routes: Route[] | null;
  fallback: string | null;
} // prettier-ignore
export interface Ask { path: string; method: string; key: string | null; model: string | null; draining: boolean; busy: boolean; type: string } // prettier-ignore

function fileOf({ providers, upstreams, models, consumers, routes, fallback, direct }: World): object {
  const labelled = (labels: Record<string, string | undefined>) => ({ labels: Object.fromEntries(Object.entries(labels).filter(([, value]) => value !== undefined)) });
  return JSON.parse(JSON.stringify({
    server: { metrics_token: 'token-of-the-metrics', direct },
    providers: providers.map(({ region, ...entry }) => ({ ...entry, url: 'http://127.0.0.1:9/v1', ...labelled({ region }) })),
    upstreams: upstreams.map(({ region, ...entry }) => ({ ...entry, model: 'real', ...labelled({ region }) })),
    models: models.map(({ stage, ...entry }) => ({ ...entry, ...labelled({ stage }) })),
    ...(consumers === null ? {} : { consumers: consumers.map(({ max, team, keys, ...entry }) => ({ ...entry, max_concurrency: max, ...labelled({ team }), keys: keys.map(({ team: own, ...key }) => ({ ...key, ...labelled({ team: own }) })) })) }),
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

export function serviceOf(file: World): Service {
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

export function decided({ table, routing, resolution }: Service, asked: Ask): string {
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

export function naive(file: World, asked: Ask): string {
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
    const callerLabels = { team: key.team ?? consumer.team, 'sys/consumer': consumer.id, 'sys/key': key.id };
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
  const usable = (ids: readonly string[]): UpstreamEntry[] =>
    ids
      .filter((id) => !off(id) && (route.upstreams?.some((entry) => entry.upstream === id) ?? true))
      .map((id) => file.upstreams.find((entry) => entry.id === id)!)
      .filter(({ id, provider, protocol, region }) => {
        const inherited = file.providers.find((entry) => entry.id === provider)!.region;
        const labels = { region: region ?? inherited, 'sys/upstream': id, 'sys/provider': provider, 'sys/protocol': protocol, 'sys/model': 'real' };
        return selects.every((some) => fits(some?.upstreams, labels));
      });
  const addressed = (name: string): UpstreamEntry[] => {
    const provider = /^(p\d)[/:]real$/.exec(name)?.[1];
    if (provider === undefined || !file.direct || consumer?.direct === false) return [];
    return usable(file.upstreams.filter((entry) => entry.provider === provider).map(({ id }) => id));
  };
  const seen = (name: string | null): UpstreamEntry[] => {
    const model = file.models.find((entry) => entry.name === name);
    if (!model || model.disabled) return [];
    if (!selects.every((some) => fits(some?.models, { stage: model.stage, 'sys/model': model.name }))) return [];
    return usable(model.upstreams);
  };
  const direct = seen(asked.model).length > 0 ? [] : addressed(asked.model);
  const name = seen(asked.model).length > 0 ? asked.model : direct.length > 0 ? '' : file.fallback;
  const candidates = direct.length > 0 ? direct : seen(name);
  if (candidates.length === 0) return 'model_not_found';
  const { protocol, capability } = ENDPOINTS[place.endpoint]!;
  const speaking = candidates.filter((entry) => entry.serves.includes(capability) && (protocol === undefined || entry.protocol === protocol));
  if (speaking.length === 0) return 'unsupported_protocol';
  if (consumer && consumer.max === 1 && asked.busy) return 'consumer_busy';
  const listed = file.models.filter((model) => seen(model.name).length > 0).map((model) => model.name);
  const priority = ({ id }: UpstreamEntry) => route.upstreams?.find((entry) => entry.upstream === id)?.priority ?? 1;
  speaking.sort((a, b) => priority(a) - priority(b));
  return `${name}: ${speaking.map(({ id }) => id).join()} (sees ${listed.join()})`;
} // prettier-ignore
