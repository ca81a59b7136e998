import type { RecoveryMode, UpstreamConfig } from '../../config/gateway-config.js';
import type { Backoff } from './backoff.js';

/** Whether probes are sent while it rests. */
export function sendsProbes({ recovery, probeIntervalMs, probe, serves }: UpstreamConfig): boolean {
  // Who answers no chat has no small request that would cost next to nothing.
  const probeable = probe.mode === 'get' || serves.includes('chat');
  return probeable && probeIntervalMs > 0 && (recovery === 'probe' || recovery === 'both');
}

/** Real requests at once that may try what rests: a tenth of its limit, one or two. */
export function trialPlaces(limit: number): number {
  return Math.floor(Math.min(2, Math.max(1, limit / 10)));
}

const WITH_TRIALS: ReadonlySet<RecoveryMode> = new Set(['half_open', 'both']);

/**
 * How real requests bring one upstream back from its rest: in the second half of it, or once a probe has permitted it,
 * a few may try it. Lives as long as the upstream; owns the word of its last probe. The places are counted by the
 * {@link Backoff}, so upstreams that share a counter share them. Exists only where trials can happen at all.
 */
export class Recovery {
  readonly places: number;
  readonly #inSecondHalf: boolean;
  /** Number of the rest in which the last probe was answered well. */
  #permittedRest = -1;

  private constructor(
    private readonly backoff: Backoff,
    config: UpstreamConfig,
  ) {
    this.places = trialPlaces(config.limit);
    this.#inSecondHalf = WITH_TRIALS.has(config.recovery);
  }

  /** Null where this upstream is never tried while it rests. */
  static of(config: UpstreamConfig, backoff: Backoff | null): Recovery | null {
    if (backoff === null) return null;
    const byProbe = sendsProbes(config) && config.probe.wake === 'trial';
    return byProbe || WITH_TRIALS.has(config.recovery) ? new Recovery(backoff, config) : null;
  }

  /**
   * Of something that rests: time until a trial may come by the clock, whether or not a place is free then. At most
   * until the end of the rest, when everybody may come.
   */
  opensMs(now: number): number {
    const { backoff } = this;
    const restMs = backoff.restingMs(now);
    const permitted = this.#permittedRest === backoff.restNumber;
    let waitMs = Infinity;
    if (this.#inSecondHalf || (permitted && backoff.afterTrial)) waitMs = backoff.firstHalfMs(now);
    // What a failed trial began is quiet in its first half whatever a probe says: an endpoint that always answers
    // would let a request run into the same wall each second.
    if (permitted && !backoff.afterTrial) waitMs = 0;
    return Math.min(restMs, Math.max(waitMs, backoff.quietMs(now)));
  }

  /** Whether a trial may begin now. */
  trialOpen(now: number): boolean {
    return this.backoff.trialSlots.free && this.trialDue(now);
  }

  /** Whether one might begin now if its place was this replica's to use. Without other replicas all places are. */
  trialDue(now: number): boolean {
    return this.backoff.trials < this.places && this.opensMs(now) === 0;
  }

  /** Takes a place; to be given back exactly once. */
  takeTrial(): boolean {
    return this.backoff.takeTrial(this.places);
  }

  giveBackTrial(): void {
    this.backoff.giveBackTrial();
  }

  /** The last probe's word counts, and only for the rest in which it was asked. */
  probed(alive: boolean, restNumber: number): void {
    this.#permittedRest = alive ? restNumber : -1;
    if (alive) this.backoff.wake();
  }
}
