import { createHash } from 'node:crypto';
import { LabelSelector, type Labels } from '../../common/selector/label-selector.js';
import { parseExpiry } from '../../common/time/expiry.js';
import {
  type ConsumerConfig,
  type ConsumerKeyConfig,
  IMPLICIT_ROUTE,
  type Protocol,
  type RouteConfig,
  type RouteUpstreamConfig,
  type SelectConfig,
} from '../access-config.js';
import type { ConsumerKeySection } from '../schema/consumer-key.section.js';
import type { ConsumerSection } from '../schema/consumer.section.js';
import type { ModelSection } from '../schema/model.section.js';
import type { ProviderSection } from '../schema/provider.section.js';
import { normalRoutePath } from '../schema/route-path-rule.js';
import type { RouteSection } from '../schema/route.section.js';
import type { SelectSection } from '../schema/select.section.js';
import type { UpstreamSection } from '../schema/upstream.section.js';
import type { ConsumerEntry } from './consumers-file.js';
import { quotasOf } from './quota-settings.js';
import type { Entry } from './read-entries.js';

/** An entry of `routes` tries two upstreams at most where it says nothing. */
const ROUTE_MAX_ATTEMPTS = 2;

/** Selectors that are written alike become one: thousands of consumers share a few. */
class SelectorPool {
  readonly #parsed = new Map<string, LabelSelector>();

  get(text: string | undefined): LabelSelector | null {
    if (text === undefined) return null;
    let selector = this.#parsed.get(text);
    if (selector === undefined) this.#parsed.set(text, (selector = LabelSelector.parse(text)));
    return selector;
  }
}

const NOTHING_SELECTED: SelectConfig = { routes: null, models: null, upstreams: null };

export function buildConsumers(entries: readonly ConsumerEntry[] | null): ConsumerConfig[] | null {
  const pool = new SelectorPool();
  return entries?.map(({ section }) => buildConsumer(section, pool)) ?? null;
}

function buildConsumer(section: ConsumerSection, pool: SelectorPool): ConsumerConfig {
  const id = section.id ?? '';
  return {
    id,
    disabled: section.disabled ?? false,
    direct: section.direct ?? false,
    limit: section.max_concurrency || Infinity,
    priority: section.priority ?? 0,
    select: buildSelect(section.select, pool),
    quota: quotasOf(section.quota),
    keys: (section.keys ?? []).map((key) => buildKey(key, id, section.labels, pool)),
  };
}

function buildKey(
  section: ConsumerKeySection,
  consumer: string,
  inherited: Readonly<Record<string, string>> | undefined,
  pool: SelectorPool,
): ConsumerKeyConfig {
  const id = section.id ?? '';
  const expires = section.expires === undefined ? null : parseExpiry(section.expires.trim());
  return {
    id,
    digest: digestOf(section) ?? '',
    disabled: section.disabled ?? false,
    expiresAtMs: expires ?? Infinity,
    labels: joined(inherited, section.labels, { 'sys/consumer': consumer, 'sys/key': id }),
    select: buildSelect(section.select, pool),
  };
}

/** Lower-case hex; null where the section has neither a hash nor a value. */
export function digestOf({ sha256, value }: ConsumerKeySection): string | null {
  if (typeof sha256 === 'string') return sha256.toLowerCase();
  return typeof value === 'string' ? createHash('sha256').update(value.trim(), 'utf8').digest('hex') : null;
}

function buildSelect(section: SelectSection | undefined, pool: SelectorPool): SelectConfig {
  if (section === undefined) return NOTHING_SELECTED;
  const { routes, models, upstreams } = section;
  return { routes: pool.get(routes), models: pool.get(models), upstreams: pool.get(upstreams) };
}

export function buildRoutes(entries: readonly Entry<RouteSection>[] | null): RouteConfig[] {
  if (entries === null) return [IMPLICIT_ROUTE];
  const pool = new SelectorPool();
  return entries.map(({ section }) => {
    const { models, upstreams, consumers } = section.select ?? {};
    const id = section.id ?? '';
    return {
      id,
      path: normalRoutePath(section.path ?? ''),
      disabled: section.disabled ?? false,
      labels: joined(section.labels, { 'sys/route': id }),
      upstreams: section.upstreams?.map(buildRouteUpstream) ?? null,
      select: { models: pool.get(models), upstreams: pool.get(upstreams), consumers: pool.get(consumers) },
      maxAttempts: section.max_attempts ?? ROUTE_MAX_ATTEMPTS,
    };
  });
}

function buildRouteUpstream(entry: NonNullable<RouteSection['upstreams']>[number]): RouteUpstreamConfig {
  const section = typeof entry === 'string' ? { upstream: entry } : entry;
  return {
    upstream: section.upstream ?? '',
    priority: section.priority ?? 1,
    weight: section.weight ?? null,
  };
}

export function upstreamLabels(
  own: UpstreamSection,
  inherited: ProviderSection,
  protocols: readonly Protocol[],
): Labels {
  return joined(inherited.labels, own.labels, {
    'sys/provider': own.provider ?? '',
    'sys/upstream': own.id ?? '',
    'sys/protocol': protocols[0] ?? '',
    'sys/model': own.model ?? '',
  });
}

export function modelLabels(section: ModelSection): Labels {
  return joined(section.labels, { 'sys/model': section.name ?? '' });
}

/** A word or a list of words that validation let through. */
export function listOf<T extends string>(
  written: string | readonly string[] | undefined,
  byDefault: T,
): readonly T[] {
  if (written === undefined) return [byDefault];
  return (typeof written === 'string' ? [written] : written) as readonly T[];
}

function joined(...layers: readonly (Readonly<Record<string, string>> | undefined)[]): Labels {
  const labels = new Map<string, string>();
  // `Object.keys`, not `for … in`: a label may be called anything.
  for (const layer of layers)
    if (layer !== undefined) for (const key of Object.keys(layer)) labels.set(key, layer[key] as string);
  return labels;
}
