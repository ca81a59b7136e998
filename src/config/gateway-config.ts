import type { Labels } from '../common/selector/label-selector.js';
import type { AuthStyle, Capability, ConsumerConfig, Protocol, RouteConfig } from './access-config.js';
import type { ConfigPath } from './loader/config-path.js';

/**
 * The validated configuration as the rest of the service sees it: defaults applied, references resolved,
 * durations in milliseconds, secrets substituted. Built once by the loader, deeply frozen, replaced as a whole
 * on reload and never changed in place.
 */
export interface GatewayConfig {
  /** Absolute path of the file; null when the configuration was given as text. */
  readonly path: string | null;
  readonly server: ServerConfig;
  /** Slots that upstreams share, in file order. */
  readonly slotGroups: readonly SlotGroupConfig[];
  readonly providers: readonly ProviderConfig[];
  readonly upstreams: readonly UpstreamConfig[];
  /** In file order. */
  readonly models: readonly ModelConfig[];
  /** Name of the model for unknown names; null = they are refused. */
  readonly defaultModel: string | null;
  /** Null = open: everybody may call. Empty = closed to everybody. */
  readonly consumers: readonly ConsumerConfig[] | null;
  /** At least one; without the key in the file the default route `/v1`. */
  readonly routes: readonly RouteConfig[];
  readonly plugins: readonly PluginConfig[];
  /** Ids of built-in interceptors to leave out. */
  readonly disable: readonly string[];
  readonly state: StateConfig;
}

/** Where counters live. */
export interface StateConfig {
  /** Absolute; null = a restart forgets them. */
  readonly file: string | null;
  /** Null = in this process. */
  readonly redis: RedisConfig | null;
}

/** A Redis that several replicas share. */
export interface RedisConfig {
  /** May hold a password: never shown. */
  readonly url: string;
  readonly prefix: string;
  readonly onError: 'local' | 'reject' | 'strict';
  /** Of one answer. */
  readonly timeoutMs: number;
}

export interface ServerConfig {
  readonly host: string;
  /** 0…65535; 0 = any free port. */
  readonly port: number;
  /** One exchange with an upstream, streaming included; 0 = no limit. */
  readonly requestTimeoutMs: number;
  readonly bodyLimitBytes: number;
  readonly shutdownGraceMs: number;
  /** Allowed origins, `*` for any; empty = CORS off. */
  readonly cors: readonly string[];
  /** Clients may narrow the choice of upstreams by headers. */
  readonly allowHints: boolean;
  /** `provider/real-model` reaches an upstream without a model entry. */
  readonly direct: boolean;
  readonly expose: Exposure;
  /** What GET /metrics asks for as a Bearer token; null = nothing. Never log it. */
  readonly metricsToken: string | null;
  /** Null: nobody may ask for explanations. */
  readonly adminToken: string | null;
  /** Most consumers that metrics name. */
  readonly metricsConsumers: number;
}

/** What answers show of the back end. */
export type Exposure = 'full' | 'ids' | 'none';

export type ThinkTagsMode = 'off' | 'split' | 'strip';

/** Any JSON value that is an object. Keys such as `__proto__` are own, plain keys. */
export type JsonObject = { readonly [key: string]: unknown };

/** A duration as the file wrote it, for the log, and what it means. */
export interface DurationSetting {
  readonly text: string;
  readonly ms: number;
}

/** How long what failed rests: `ms` is the cap of the ladder. */
export interface BackoffSetting extends DurationSetting {
  /** First rest of a streak. */
  readonly baseMs: number;
}

/** What brings a resting upstream back before its rest has ended: probes, real requests as trials, both, or nothing. */
export type RecoveryMode = 'probe' | 'half_open' | 'both' | 'timer';

/** How a background probe asks. */
export interface ProbeConfig {
  readonly mode: 'completion' | 'get';
  /** Of `get`: from the root of the host. */
  readonly path: string;
  /** Of `get`: statuses that mean alive; at least one. */
  readonly expect: readonly number[];
  /** What a success means: back in the pool, or that a request may try it. */
  readonly wake: 'full' | 'trial';
}

/** A forward proxy that speaks HTTP/1.1, over TCP or TLS. */
export interface ProxyConfig {
  /** `http://host:port` or `https://host:port`, without user info. */
  readonly origin: string;
  /** Value of `Proxy-Authorization`; null = none. A secret. */
  readonly authorization: string | null;
  /** For logs and reports: the address, user info hidden. */
  readonly shown: string;
  /** Where it comes from: `proxy`, or the name of an environment variable. */
  readonly source: string;
}

/** Contents of the PEM files of a provider, checked. */
export interface TlsConfig {
  /** Authorities that are trusted besides Node's; null = none. */
  readonly ca: string | null;
  /** Client certificate and key, both or neither. The key is a secret. */
  readonly client: { readonly cert: string; readonly key: string } | null;
  readonly servername: string | null;
}

/** A preventive quota: what may be used in each window of time. */
export interface QuotaConfig {
  readonly unit: 'tokens' | 'requests';
  /** Whole, ≥ 1. */
  readonly limit: number;
  readonly per: DurationSetting;
  /** `calendar` turns at fixed times of UTC; `sliding` looks back from now. */
  readonly window: 'calendar' | 'sliding';
}

/** One machine that serves several upstreams. */
export interface SlotGroupConfig {
  readonly id: string;
  /** ≥ 1. */
  readonly limit: number;
  readonly settleMs: number;
}

export interface ProviderConfig {
  readonly id: string;
  /** http(s), without trailing slash, query, fragment or userinfo. */
  readonly url: string;
  /** Trimmed; '' = no Authorization header is sent, or there are `keys`. */
  readonly key: string;
  /** The forward proxy on the way to it; null = a direct connection. */
  readonly proxy: ProxyConfig | null;
  /** What its TLS needs beyond the defaults; null = nothing. */
  readonly tls: TlsConfig | null;
  /**
   * The pool, in file order. Null: the single `key`, with `errors: simple`. A single key with classified errors is a pool
   * of one. An empty pool is one without a usable key: nothing is sent.
   */
  readonly keys: readonly KeyConfig[] | null;
  readonly keyOrder: 'round_robin' | 'ordered';
  /** Null = simple. */
  readonly errors: ErrorRules | null;
  /** Where the key is put; null = by the protocol of the request. */
  readonly auth: AuthStyle | null;
  readonly disabled: boolean;
  /** Fixed request headers, names in lower case; they win over the client's. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly patch: JsonObject | null;
  /** Lower case; null = off. */
  readonly sessionHeader: string | null;
  readonly reasoningField: string | null;
  readonly reasoningEmptyOk: boolean;
  /** Of the counter that this provider's upstreams without their own share; null = none. */
  readonly backoff: BackoffSetting | null;
  readonly firstByteTimeout: DurationSetting | null;
  readonly probeInterval: DurationSetting | null;
  /** Of all its upstreams together; empty = none. */
  readonly quota: readonly QuotaConfig[];
  /** Whether streams may be sent with `stream_options.include_usage`. */
  readonly asksUsage: boolean;
}

export interface KeyConfig {
  /** For log, metrics and headers; never the key. */
  readonly id: string;
  /** '' = no Authorization header is sent. */
  readonly value: string;
  /** Wall clock: the first millisecond at which it is not valid any more. */
  readonly expiresAtMs: number | null;
  readonly disabled: boolean;
  readonly quota: readonly QuotaConfig[];
}

/** What rests after which class of error, and for how long. A rest of 0 is none. */
export interface ErrorRules {
  readonly rateLimited: { readonly restMs: number; readonly maxMs: number };
  readonly quotaExhausted: { readonly restMs: number; readonly maxMs: number };
  readonly unauthorized: { readonly restMs: number };
  readonly modelGone: { readonly restMs: number };
  /** The rests are of an upstream that no `backoff` covers. */
  readonly serverError: { readonly retries: number; readonly restMs: number; readonly maxMs: number };
}

export interface UpstreamConfig {
  readonly id: string;
  readonly provider: ProviderConfig;
  /** The provider's real model name. */
  readonly model: string;
  /** Tokens; null = not known. */
  readonly contextWindow: number | null;
  /** At least one, the preferred one first. */
  readonly protocols: readonly Protocol[];
  /** At least one. */
  readonly serves: readonly Capability[];
  /** By itself or with its provider. */
  readonly disabled: boolean;
  /** The provider's, then its own, then the built-in ones. */
  readonly labels: Labels;
  /** Slots: ≥ 1, or Infinity for unlimited. Upstream → provider → unlimited. */
  readonly limit: number;
  /** Whose slots it shares beside its own; upstream → provider → none. */
  readonly slotGroup: SlotGroupConfig | null;
  /** Pause between the end of an exchange and the next claim; upstream → group → 0. */
  readonly settleMs: number;
  readonly patch: JsonObject | null;
  /** Upstream → provider → off. */
  readonly thinkTags: ThinkTagsMode;
  /** Own backoff counter; null = the provider's shared one, or none. */
  readonly backoff: BackoffSetting | null;
  readonly firstByteTimeout: DurationSetting | null;
  readonly probeInterval: DurationSetting | null;
  /** Effective, upstream → provider → 30 s; 0 = off. */
  readonly firstByteTimeoutMs: number;
  /** Effective, upstream → provider → off; 0 = off. */
  readonly firstTokenTimeoutMs: number;
  /** Effective, upstream → provider → off; 0 = off. */
  readonly idleTimeoutMs: number;
  /** Effective, upstream → provider → null = cannot go on with a text that another one began. */
  readonly prefill: PrefillConfig | null;
  /** Effective, upstream → provider → 1 s; 0 = off. */
  readonly probeIntervalMs: number;
  /** Effective, upstream → provider → `probe`. */
  readonly recovery: RecoveryMode;
  /** Effective, each key upstream → provider → default. */
  readonly probe: ProbeConfig;
  /** Effective, upstream → provider → server; 0 = no limit. */
  readonly requestTimeoutMs: number;
  readonly quota: readonly QuotaConfig[];
}

/** What goes with a text to be continued, beside the text. */
export interface PrefillConfig {
  /** Merged into the assistant message that holds the text. */
  readonly message: JsonObject | null;
  /** Merged into the body. */
  readonly body: JsonObject | null;
}

export interface ModelConfig {
  readonly name: string;
  /** Order = priority; at least one. A plain id in the file is an entry with nothing but defaults. */
  readonly entries: readonly ModelEntryConfig[];
  /** The upstreams of the entries, in their order, each once. */
  readonly upstreams: readonly UpstreamConfig[];
  readonly disabled: boolean;
  /** Its own, then the built-in one. */
  readonly labels: Labels;
  readonly patch: JsonObject | null;
  /** Name of the routing policy within a tier; `listed` = as the file says. */
  readonly order: string;
  /** Attempts for one request; Infinity = as many as there are candidates. */
  readonly maxAttempts: number;
  /** Of one request over all its attempts; 0 = no limit. */
  readonly deadlineMs: number;
  /** The file says more than plain ids and an order: errors then tell about every candidate. */
  readonly detailed: boolean;
  /** What becomes of a stream that breaks. */
  readonly onInterrupt: 'error' | 'continue';
  /** A conversation prefers the upstream that served it before. */
  readonly affinity: boolean;
  /** How long it waits for that one while it is busy; 0 = not at all. */
  readonly affinityWaitMs: number;
  /** Null: a request that finds no free slot is refused at once. */
  readonly queue: QueueConfig | null;
  /** Null: nothing is sent to the client before an answer begins. */
  readonly heartbeat: HeartbeatConfig | null;
}

/** Waiting for a slot. */
export interface QueueConfig {
  /** How many may wait, ≥ 1. */
  readonly size: number;
  readonly waitMs: number;
  /** Of the bodies of all that wait. */
  readonly maxBytes: number;
  /** Waiting that long lifts a request to the next occupied priority; 0 = never. */
  readonly ageingMs: number;
}

/** Signs of life on streams that wait. */
export interface HeartbeatConfig {
  readonly afterMs: number;
  readonly everyMs: number;
}

/** An entry that is not for everybody at once. */
export interface SpillConfig {
  readonly afterMs: number;
  /** Requests of a lower priority never use the entry; -Infinity = all may. */
  readonly minPriority: number;
}

/** One upstream's place in a model's list. */
export interface ModelEntryConfig {
  readonly upstream: UpstreamConfig;
  /** Lower = better. */
  readonly tier: number;
  /** ≥ 0; 0 = last resort. */
  readonly weight: number;
  readonly quota: readonly QuotaConfig[];
  /** Null: it may be used at once. */
  readonly spill: SpillConfig | null;
}

export interface PluginConfig {
  /** A package name, or a path relative to the configuration file. */
  readonly module: string;
  readonly config: JsonObject | null;
  /** Where it stands in the file: `plugins`, and its number. */
  readonly path: ConfigPath;
}
