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
