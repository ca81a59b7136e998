import type { ModelConfig, ModelEntryConfig } from '../config/gateway-config.js';

/** Why a candidate was not tried, as `error.attempts` and the log name it. */
export type SkipReason = 'cooling' | 'quota' | 'busy' | 'no_key' | 'tier' | 'hint';

/**
 * Something beside rests and slots that can close a candidate: a quota, a pool without a usable key. Asked for each claim,
 * so it must be a look, no work. Owned by the feature it speaks for.
 */
export interface Gate {
  readonly reason: SkipReason;
  /** 0 = open; else milliseconds until it opens by itself; Infinity = it does not. */
  closedMs(): number;
}

/** Injection token of the {@link GateSource}. */
export const GATE_SOURCE = Symbol.for('llm-proxy:gate-source');

/** Knows the gate before an entry of a model. */
export interface GateSource {
  /** Null = nothing closes it. Asked once for each candidate. */
  gateOf(model: ModelConfig, entry: ModelEntryConfig): Gate | null;
}
