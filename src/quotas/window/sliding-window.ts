import type { QuotaWindow, Use } from './quota-window.js';

/** Uses nearer to each other than this part of the window count as one. */
const PARTS = 120;

interface Bucket {
  /** Of its first use; nothing is added where that is long ago. */
  readonly fromMs: number;
  /** Of its last use: all of it counts until that one has left the window. */
  toMs: number;
  amount: number;
}

/**
 * What was used during the last `lengthMs`, at any moment. Bounded memory: at most 122 buckets, however many uses. A use
 * counts at least as long as the window, and at most 1/120 longer.
 */
export class SlidingWindow implements QuotaWindow {
  #buckets: Bucket[] = [];
  #used = 0;
  /** Number of the first bucket that is still kept. */
  #first = 0;

  constructor(
    private readonly lengthMs: number,
    uses: readonly Use[],
    nowMs: number,
  ) {
    // Trap: what is restored is never joined with what comes after it, else it would count longer with each restart.
    this.#buckets = uses
      .map(([atMs, amount]) => ({ fromMs: -Infinity, toMs: Math.min(atMs, nowMs), amount }))
      .sort((a, b) => a.toMs - b.toMs);
    this.#used = uses.reduce((sum, [, amount]) => sum + amount, 0);
    this.#goTo(nowMs);
  }

  used(nowMs: number): number {
    this.#goTo(nowMs);
    return this.#used;
  }

  book(amount: number, nowMs: number): number {
    this.#goTo(nowMs);
    this.#used += amount;
    const last = this.#buckets.at(-1);
    if (last === undefined || nowMs - last.fromMs >= this.lengthMs / PARTS) {
      this.#buckets.push({ fromMs: nowMs, toMs: nowMs, amount });
    } else {
      last.toMs = nowMs;
      last.amount += amount;
    }
    return this.#first + this.#buckets.length - 1;
  }

  takeBack(amount: number, place: number, nowMs: number): void {
    this.#goTo(nowMs);
    const bucket = this.#buckets[place - this.#first];
    if (bucket === undefined) return;
    bucket.amount -= amount;
    this.#used -= amount;
  }

  opensInMs(room: number, nowMs: number): number {
    this.#goTo(nowMs);
    let left = this.#used;
    let opensInMs = 0;
    for (const { toMs, amount } of this.#buckets) {
      if (left < room) break;
      left -= amount;
      opensInMs = toMs + this.lengthMs - nowMs;
    }
    return left < room || opensInMs > 0 ? opensInMs : this.lengthMs;
  }

  turnsInMs(): number {
    return this.lengthMs;
  }

  uses(nowMs: number): Use[] {
    this.#goTo(nowMs);
    return this.#buckets.filter(({ amount }) => amount !== 0).map(({ toMs, amount }) => [toMs, amount]);
  }

  #goTo(nowMs: number): void {
    const aheadMs = (this.#buckets.at(-1)?.toMs ?? -Infinity) - nowMs;
    // The clock was set back: what was used just now was not used in the future.
    if (aheadMs > 0) {
      this.#buckets = this.#buckets.map(({ fromMs, toMs, amount }) => ({
        fromMs: fromMs - aheadMs,
        toMs: toMs - aheadMs,
        amount,
      }));
    }
    let gone = 0;
    for (const { toMs, amount } of this.#buckets) {
      if (toMs + this.lengthMs > nowMs) break;
      this.#used -= amount;
      gone++;
    }
    if (gone > 0) this.#buckets.splice(0, gone);
    this.#first += gone;
  }
}
