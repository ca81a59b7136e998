import type { ModelConfig, ModelEntryConfig } from '../config/gateway-config.js';
import type { Gate } from '../contracts/gate.js';
import type { Upstream } from '../upstreams/upstream.js';

/** One upstream as a choice for one model. Lives with the configuration; its identity is its key. */
export interface Candidate {
  readonly model: ModelConfig;
  readonly entry: ModelEntryConfig;
  readonly upstream: Upstream;
  /** Null for most: nothing but rests and slots decides. */
  readonly gates: readonly Gate[] | null;
}
