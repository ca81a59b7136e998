import type { QuotaConfig } from './gateway-config.js';
import type { LabelSelector, Labels } from '../common/selector/label-selector.js';

/** Who may call the service. A caller is one key of one consumer. */
export interface ConsumerConfig {
  readonly id: string;
  readonly disabled: boolean;
  /** May address a provider and its model without an entry in `models`. */
  readonly direct: boolean;
  /** Requests at once over all keys: ≥ 1, or Infinity. */
  readonly limit: number;
  /** Place in a waiting line, −1000…1000; higher first. */
  readonly priority: number;
  readonly select: SelectConfig;
  readonly quota: readonly QuotaConfig[];
  readonly keys: readonly ConsumerKeyConfig[];
}

export interface ConsumerKeyConfig {
  /** Unique in its consumer. */
  readonly id: string;
  /** SHA-256 of the key, in lower-case hex. The key itself is not kept. */
  readonly digest: string;
  readonly disabled: boolean;
  /** Unix milliseconds from which it is refused; Infinity = never. */
  readonly expiresAtMs: number;
  /** Of the caller: the consumer's, then its own, then the built-in ones. */
  readonly labels: Labels;
  readonly select: SelectConfig;
}

/** Null = everything. */
export interface SelectConfig {
  readonly routes: LabelSelector | null;
  readonly models: LabelSelector | null;
  readonly upstreams: LabelSelector | null;
}

/** A path under which the endpoints answer. */
export interface RouteConfig {
  readonly id: string;
  /** Begins with a slash, without a trailing or doubled one; `/` alone is the root. */
  readonly path: string;
  readonly disabled: boolean;
  /** Its own, then the built-in ones. */
  readonly labels: Labels;
  /** Null = all; else at least one, none twice. */
  readonly upstreams: readonly RouteUpstreamConfig[] | null;
  readonly select: RouteSelectConfig;
  /** Attempts for one request, ≥ 1; Infinity = no limit but the list. */
  readonly maxAttempts: number;
}

export interface RouteSelectConfig {
  readonly models: LabelSelector | null;
  readonly upstreams: LabelSelector | null;
  readonly consumers: LabelSelector | null;
}

export interface RouteUpstreamConfig {
  /** Id of the upstream. */
  readonly upstream: string;
  /** Low first. */
  readonly priority: number;
  /** ≥ 1; null where the file gives none. */
  readonly weight: number | null;
}

/** Without `routes` in the file: everything under /v1, no limit of attempts but the model's list. */
export const IMPLICIT_ROUTE: RouteConfig = {
  id: 'default',
  path: '/v1',
  disabled: false,
  labels: new Map([['sys/route', 'default']]),
  upstreams: null,
  select: { models: null, upstreams: null, consumers: null },
  maxAttempts: Infinity,
};

/** What upstreams speak; the first of a list is preferred. */
/** Those that can be named, and that nothing is sent in yet. */
export const UNSPOKEN: ReadonlySet<Protocol> = new Set<Protocol>(['gemini', 'bedrock']);

export const PROTOCOLS = ['chat-completions', 'responses', 'messages', 'gemini', 'bedrock'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

/** What an upstream can do. */
export const CAPABILITIES = ['chat', 'embeddings', 'images', 'audio', 'rerank', 'completions'] as const;
export type Capability = (typeof CAPABILITIES)[number];

/** Where a provider wants its key. */
export const AUTH_STYLES = ['bearer', 'x-api-key', 'api-key', 'x-goog-api-key', 'none'] as const;
export type AuthStyle = (typeof AUTH_STYLES)[number];
