import type { Recovery } from './backoff/recovery.js';
import type { Upstream } from './upstream.js';

/**
 * One slot held for all attempts on one upstream, and the place of a trial where it is one. Released exactly once,
 * however often it is asked.
 */
export class Lease {
  #held = true;

  /** `startedAt` is monotonic. The slot, and the place of a trial, must have been taken already. */
  constructor(
    readonly upstream: Upstream,
    readonly startedAt: number,
    private readonly trialOf: Recovery | null = null,
  ) {}

  /** True where the upstream rests and this request tries whether it is back. */
  get trial(): boolean {
    return this.trialOf !== null;
  }

  get held(): boolean {
    return this.#held;
  }

  release(): void {
    if (!this.#held) return;
    this.#held = false;
    const { seat, slots } = this.upstream;
    (seat ?? slots).release(this);
    this.trialOf?.giveBackTrial();
  }
}
