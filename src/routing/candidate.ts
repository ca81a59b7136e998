import type { ModelConfig } from '../config/gateway-config.js';
import type { Upstream } from '../upstreams/upstream.js';

/** One upstream as a choice for one model. Lives with the configuration; its identity is its key. */
export interface Candidate {
  readonly model: ModelConfig;
  readonly upstream: Upstream;
}
