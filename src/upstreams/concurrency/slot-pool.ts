/**
 * The slots of one upstream: the only truth about its load. Lives as long as the upstream.
 * Never above the limit through `claim`, never negative.
 */
export class SlotPool {
  #active = 0;

  /** `limit` ≥ 1, or Infinity for unlimited. */
  constructor(readonly limit: number) {}

  get active(): number {
    return this.#active;
  }

  get free(): boolean {
    return this.#active < this.limit;
  }

  /** Takes a slot where one is free. */
  claim(): boolean {
    if (!this.free) return false;
    this.#active++;
    return true;
  }

  release(): void {
    if (this.#active === 0) throw new Error('a slot was released that nobody held');
    this.#active--;
  }

  /** As the log shows it: `1/4`, `1/∞`. */
  toString(): string {
    return `${this.#active}/${this.limit === Infinity ? '∞' : this.limit}`;
  }
}
