/**
 * The slots of one upstream or of one group: the only truth about its load. Lives as long as what it describes.
 * Never above the limit through `claim`, never negative.
 */
export class SlotPool {
  #active = 0;
  /** When the pauses end of slots that are no longer held and not free yet. */
  readonly #settlingUntil: number[] = [];

  /** `limit` ≥ 1, or Infinity for unlimited. */
  constructor(readonly limit: number) {}

  get active(): number {
    return this.#active;
  }

  /** Held, or in the pause after it. */
  get occupied(): number {
    return this.#active + this.#settlingUntil.length;
  }

  get free(): boolean {
    return this.#active + this.#settlingUntil.length < this.limit;
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

  /** Like `release`, but the slot stays taken until {@link settled} is called with the same time. */
  settle(until: number): void {
    this.release();
    this.#settlingUntil.push(until);
  }

  settled(until: number): void {
    const index = this.#settlingUntil.indexOf(until);
    if (index < 0) throw new Error('a pause ended that had not begun');
    this.#settlingUntil.splice(index, 1);
  }

  /** When the next pause ends, if a pause is all that keeps the slots taken: 0 = a slot is free, null = they are held. */
  get settlingUntil(): number | null {
    if (this.free) return 0;
    return this.#active < this.limit ? Math.min(...this.#settlingUntil) : null;
  }

  /** As the log shows it: `1/4`, `1/∞`. */
  toString(): string {
    return fraction(this.#active, this.limit);
  }

  /** With those in their pause: why nothing was free. */
  get shownOccupied(): string {
    return fraction(this.occupied, this.limit);
  }
}

function fraction(count: number, limit: number): string {
  return `${count}/${limit === Infinity ? '∞' : limit}`;
}
