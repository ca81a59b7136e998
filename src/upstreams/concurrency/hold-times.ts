import type { Holder } from './seat.js';

/** Weight of the newest exchange in the mean. */
const NEWEST = 0.3;

/** How long slots are held: who holds one at this moment, and the moving mean of those that were given back. */
export class HoldTimes {
  /** In the order of their claims. */
  readonly #holders = new Set<Holder>();
  #meanMs: number | null = null;

  /** Null before the first exchange is over. */
  get meanMs(): number | null {
    return this.#meanMs;
  }

  began(holder: Holder): void {
    this.#holders.add(holder);
  }

  /** Returns how long it was held. */
  ended(holder: Holder, now: number): number {
    this.#holders.delete(holder);
    const heldMs = now - holder.startedAt;
    this.#meanMs = this.#meanMs === null ? heldMs : this.#meanMs + NEWEST * (heldMs - this.#meanMs);
    return heldMs;
  }

  /** What should be left of the oldest exchange; null without data. */
  nextFreeMs(now: number): number | null {
    if (this.#meanMs === null) return null;
    for (const { startedAt } of this.#holders) return Math.max(0, this.#meanMs - (now - startedAt));
    return 0;
  }
}
