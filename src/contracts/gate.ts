import type { KeyConfig, ModelConfig, ModelEntryConfig } from '../config/gateway-config.js';

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

/** A gate that windows of time close and open. */
export interface WindowGate extends Gate {
  /** Time until its longest window turns. */
  turnsInMs(): number;
}

/** Knows the gates of quotas. */
export interface GateSource {
  /** Before an entry of a model; null = nothing closes it. Asked once for each candidate. */
  gateOf(model: ModelConfig, entry: ModelEntryConfig): Gate | null;
  /** Before a key of a pool, the same way. */
  gateOfKey(provider: string, key: KeyConfig): WindowGate | null;
}
