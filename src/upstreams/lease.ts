import type { Recovery } from './backoff/recovery.js';
import type { Upstream } from './upstream.js';

/**
 * One slot held for all attempts on one upstream, and the place of a trial where it is one. Released exactly once,
 * however often it is asked.
 */
export class Lease {
  #held = true;
  #revoked = false;
  #onRevoked: (() => void) | null = null;

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

  /** Told once where the slot must not be used any more, whoever holds it: what runs on it has to end. */
  set onRevoked(listener: (() => void) | null) {
    this.#onRevoked = listener;
    if (this.#revoked) listener?.();
  }

  /** The slot may be somebody else's by now. It is still to be released. */
  revoke(): void {
    if (this.#revoked || !this.#held) return;
    this.#revoked = true;
    this.#onRevoked?.();
  }

  release(): void {
    if (!this.#held) return;
    this.#held = false;
    this.#onRevoked = null;
    const { keeper, seat, slots } = this.upstream;
    keeper?.givesBack(this);
    (seat ?? slots).release(this);
    this.trialOf?.giveBackTrial();
  }
}
