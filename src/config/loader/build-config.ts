import { dirname, resolve } from 'node:path';
import type { AuthStyle, Capability, Protocol } from '../access-config.js';
import type {
  Exposure,
  GatewayConfig,
  ModelConfig,
  ModelEntryConfig,
  PluginConfig,
  PrefillConfig,
  ProviderConfig,
  ServerConfig,
  StateConfig,
  SlotGroupConfig,
  ThinkTagsMode,
  UpstreamConfig,
} from '../gateway-config.js';
import type { ModelEntrySection } from '../schema/model-entry.section.js';
import type { ModelSection } from '../schema/model.section.js';
import { parseByteSize } from '../schema/number-rules.js';
import type { PluginSection } from '../schema/plugin.section.js';
import type { PrefillMerge, ProviderSection } from '../schema/provider.section.js';
import type { ServerSection } from '../schema/server.section.js';
import { parseOnOff, parseThinkTags } from '../schema/tolerant-rules.js';
import type { StateSection } from '../schema/state.section.js';
import type { UpstreamSection } from '../schema/upstream.section.js';
import { normalUrl } from '../schema/url-rule.js';
import { durationOf } from './duration-setting.js';
import type { NetworkSettings } from './network-settings.js';
import { buildErrorRules, buildKeys } from './build-keys.js';
import { quotasOf } from './quota-settings.js';
import { buildConsumers, buildRoutes, listOf, modelLabels, upstreamLabels } from './build-access.js';
import { redisOf } from './state-settings.js';
import { heartbeatOf, queueOf, slotGroupOf, slotGroupsOf, spillOf } from './queue-settings.js';
import type { Entries, Entry } from './read-entries.js';
import { backoffOf, probeOf } from './recovery-settings.js';

export const DEFAULTS = {
  host: '0.0.0.0',
  port: 8100,
  requestTimeoutMs: 300_000,
  bodyLimitBytes: 64 * 1024 * 1024,
  shutdownGraceMs: 30_000,
  firstByteTimeoutMs: 30_000,
  probeIntervalMs: 1000,
  metricsConsumers: 1000,
} as const;

/** Where a configuration came from. */
export interface Origin {
  readonly path: string | null;
  /** Of a configuration given as text: what relative paths start from. */
  readonly directory: string | null;
}

/** Applies defaults and inheritance to entries in which no problem was found. */
export function buildConfig(
  entries: Entries,
  network: ReadonlyMap<ProviderSection, NetworkSettings>,
  origin: Origin,
): GatewayConfig {
  const server = buildServer(entries.server);
  const providers = new Map<string, { section: ProviderSection; config: ProviderConfig }>();
  for (const { section } of entries.providers ?? []) {
    const config = buildProvider(section, known(network.get(section)));
    providers.set(config.id, { section, config });
  }
  const groups = slotGroupsOf(known(entries.slotGroups));
  const upstreams = new Map<string, UpstreamConfig>();
  for (const { section } of entries.upstreams ?? []) {
    const provider = known(providers.get(section.provider ?? ''));
    const config = buildUpstream(section, provider.section, provider.config, { server, groups });
    upstreams.set(config.id, config);
  }
  return {
    path: origin.path,
    server,
    slotGroups: [...groups.values()],
    providers: [...providers.values()].map(({ config }) => config),
    upstreams: [...upstreams.values()],
    models: (entries.models ?? []).map(({ section }) => buildModel(section, upstreams)),
    defaultModel: entries.defaultModel,
    consumers: buildConsumers(entries.consumers),
    routes: buildRoutes(entries.routes),
    plugins: entries.plugins.map((plugin) => buildPlugin(plugin, origin)),
    disable: entries.disable,
    state: buildState(entries.state, origin),
  };
}

function buildServer(section: ServerSection): ServerConfig {
  return {
    host: section.host ?? DEFAULTS.host,
    port: section.port ?? DEFAULTS.port,
    requestTimeoutMs: durationOf(section.request_timeout)?.ms ?? DEFAULTS.requestTimeoutMs,
    bodyLimitBytes:
      section.body_limit === undefined ? DEFAULTS.bodyLimitBytes : known(parseByteSize(section.body_limit)),
    shutdownGraceMs: durationOf(section.shutdown_grace)?.ms ?? DEFAULTS.shutdownGraceMs,
    cors: section.cors ?? [],
    allowHints: section.allow_hints ?? false,
    direct: section.direct ?? false,
    expose: (section.expose ?? 'ids') as Exposure,
    metricsToken: section.metrics_token?.trim() ?? null,
    adminToken: section.admin_token?.trim() ?? null,
    metricsConsumers: section.metrics_consumers ?? DEFAULTS.metricsConsumers,
  };
}

function buildProvider(section: ProviderSection, network: NetworkSettings): ProviderConfig {
  return {
    id: known(section.id),
    url: normalUrl(known(section.url)),
    key: section.key?.trim() ?? '',
    ...network,
    keys: buildKeys(section),
    keyOrder: section.key_order ?? 'round_robin',
    errors: buildErrorRules(section),
    auth: (section.auth as AuthStyle | undefined) ?? null,
    disabled: section.disabled ?? false,
    headers: Object.entries(section.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
    patch: section.patch ?? null,
    sessionHeader: section.session_header?.toLowerCase() ?? null,
    reasoningField: section.reasoning_field ?? null,
    reasoningEmptyOk: section.reasoning_empty_ok ?? false,
    backoff: backoffOf(section.backoff),
    firstByteTimeout: durationOf(section.first_byte_timeout),
    probeInterval: durationOf(section.probe_interval),
    quota: quotasOf(section.quota),
    asksUsage: parseOnOff(section.usage) ?? true,
  };
}

function buildUpstream(
  own: UpstreamSection,
  inherited: ProviderSection,
  provider: ProviderConfig,
  { groups, server }: { server: ServerConfig; groups: ReadonlyMap<string, SlotGroupConfig> },
): UpstreamConfig {
  const slotGroup = slotGroupOf(own.slot_group, inherited.slot_group, groups);
  const firstByteTimeout = durationOf(own.first_byte_timeout);
  const probeInterval = durationOf(own.probe_interval);
  const firstTokenTimeout = durationOf(own.first_token_timeout) ?? durationOf(inherited.first_token_timeout);
  const idleTimeout = durationOf(own.idle_timeout) ?? durationOf(inherited.idle_timeout);
  const requestTimeout = durationOf(own.request_timeout) ?? durationOf(inherited.request_timeout);
  const protocols = listOf<Protocol>(own.protocol ?? inherited.protocol, 'chat-completions');
  return {
    id: known(own.id),
    provider,
    model: known(own.model),
    contextWindow: own.context_window ?? null,
    protocols,
    serves: listOf<Capability>(own.serves, 'chat'),
    disabled: own.disabled === true || provider.disabled,
    labels: upstreamLabels(own, inherited, protocols),
    // Not `??`: an explicit null is a choice, namely unlimited.
    limit: limitOf(own.max_concurrency === undefined ? inherited.max_concurrency : own.max_concurrency),
    slotGroup,
    settleMs: durationOf(own.settle)?.ms ?? slotGroup?.settleMs ?? 0,
    patch: own.patch ?? null,
    thinkTags: thinkTagsOf(own.think_tags) ?? thinkTagsOf(inherited.think_tags) ?? 'off',
    backoff: backoffOf(own.backoff),
    firstByteTimeout,
    probeInterval,
    firstByteTimeoutMs: (firstByteTimeout ?? provider.firstByteTimeout)?.ms ?? DEFAULTS.firstByteTimeoutMs,
    firstTokenTimeoutMs: firstTokenTimeout?.ms ?? 0,
    idleTimeoutMs: idleTimeout?.ms ?? 0,
    prefill: prefillOf(own.prefill ?? inherited.prefill),
    probeIntervalMs: (probeInterval ?? provider.probeInterval)?.ms ?? DEFAULTS.probeIntervalMs,
    recovery: own.recovery ?? inherited.recovery ?? 'probe',
    probe: probeOf(own.probe, inherited.probe),
    requestTimeoutMs: requestTimeout?.ms ?? server.requestTimeoutMs,
    quota: quotasOf(own.quota),
  };
}

function buildModel(section: ModelSection, upstreams: ReadonlyMap<string, UpstreamConfig>): ModelConfig {
  const entries = (section.upstreams ?? []).map((entry) => buildEntry(entry, upstreams));
  return {
    name: known(section.name),
    entries,
    upstreams: [...new Set(entries.map(({ upstream }) => upstream))],
    disabled: section.disabled ?? false,
    labels: modelLabels(section),
    patch: section.patch ?? null,
    order: section.order ?? 'listed',
    maxAttempts: section.max_attempts ?? Infinity,
    deadlineMs: durationOf(section.deadline)?.ms ?? 0,
    detailed: section.order !== undefined || (section.upstreams ?? []).some(isDetailed),
    onInterrupt: section.on_interrupt ?? 'error',
    affinity: section.affinity === 'session',
    affinityWaitMs: durationOf(section.affinity_wait)?.ms ?? 0,
    queue: queueOf(section.queue),
    heartbeat: heartbeatOf(section.heartbeat),
  };
}

/** Whether an entry says more than the id of an upstream. */
function isDetailed(entry: string | ModelEntrySection): boolean {
  return typeof entry !== 'string' && Object.keys(entry).some((key) => key !== 'upstream');
}

function buildEntry(
  entry: string | ModelEntrySection,
  upstreams: ReadonlyMap<string, UpstreamConfig>,
): ModelEntryConfig {
  const section: ModelEntrySection = typeof entry === 'string' ? { upstream: entry } : entry;
  return {
    upstream: known(upstreams.get(known(section.upstream))),
    tier: section.tier ?? 1,
    weight: section.weight ?? 1,
    quota: quotasOf(section.quota),
    spill: spillOf(section),
  };
}

function buildPlugin({ index, section }: Entry<PluginSection>, origin: Origin): PluginConfig {
  const module = known(section.module);
  const relative = /^\.{1,2}\//.test(module) && origin.path === null && origin.directory !== null;
  return {
    module: relative ? resolve(origin.directory ?? '', module) : module,
    config: section.config ?? null,
    path: ['plugins', index],
  };
}

function buildState(section: StateSection, { path, directory }: Origin): StateConfig {
  const { file } = section;
  const base = path === null ? (directory ?? '') : dirname(path);
  return { file: file === undefined ? null : resolve(base, file.trim()), redis: redisOf(section) };
}

function prefillOf(written: boolean | PrefillMerge | undefined): PrefillConfig | null {
  if (written === undefined || written === false) return null;
  const { message, body } = written === true ? {} : written;
  return { message: message ?? null, body: body ?? null };
}

function limitOf(limit: number | null | undefined): number {
  return limit === undefined || limit === null || limit === 0 ? Infinity : limit;
}

/** Null where the key is absent. */
function thinkTagsOf(written: unknown): ThinkTagsMode | null {
  return written === undefined ? null : (parseThinkTags(written) ?? 'off');
}

/** Validation has made sure of it. */
function known<T>(value: T | undefined | null): T {
  if (value === undefined || value === null)
    throw new TypeError('a configuration with problems must not be built');
  return value;
}
