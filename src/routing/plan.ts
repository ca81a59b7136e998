import type { ModelConfig } from '../config/gateway-config.js';
import type { SkipReason } from '../contracts/gate.js';
import type { Candidate } from './candidate.js';

/** What a request may be tried at, in order. Made for one request, or shared where nothing about it depends on one. */
export interface Plan {
  readonly model: ModelConfig;
  readonly candidates: readonly Candidate[];
  /** Attempts at most; Infinity = no limit. */
  readonly maxAttempts: number;
  /** Candidates of the model that this request rules out, for its errors. */
  readonly leftOut: readonly LeftOut[];
}

/** Why an entry of a model is no candidate of a request at all. */
export type AbsentReason = 'disabled' | 'route' | 'serves' | 'protocol' | 'issued';

/** An entry of a model that never came into a plan. */
export interface Absent {
  readonly candidate: Candidate;
  readonly reason: AbsentReason;
}

export interface LeftOut {
  readonly candidate: Candidate;
  readonly reason: SkipReason;
}
