import type { Upstream } from './upstream.js';

/** One slot held for one attempt. Released exactly once, however often it is asked. */
export class Lease {
  #held = true;

  /** `startedAt` is monotonic. The slot must have been claimed already. */
  constructor(
    readonly upstream: Upstream,
    readonly startedAt: number,
  ) {}

  get held(): boolean {
    return this.#held;
  }

  release(): void {
    if (!this.#held) return;
    this.#held = false;
    this.upstream.slots.release();
  }
}
