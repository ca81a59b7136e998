import type { UpstreamConfig } from '../config/gateway-config.js';

/** Injection token of the {@link ProbeSender}. */
export const PROBE_SENDER = Symbol.for('llm-proxy:probe-sender');

/** Sends one background probe through the same attempt stages as a request. Takes no slot itself. */
export interface ProbeSender {
  /** True when the upstream answered 2xx and a first body byte in time; null where none was sent. Never throws. */
  probe(upstream: UpstreamConfig, signal: AbortSignal): Promise<boolean | null>;
}

/** Injection token of the monotonic clock. */
export const CLOCK = Symbol.for('llm-proxy:clock');

/** Injection token of the wall clock, a function. */
export const WALL_CLOCK = Symbol.for('llm-proxy:wall-clock');
