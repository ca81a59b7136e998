/**
 * The slots of one upstream or of one group: the only truth about its load. Lives as long as what it describes.
 * Never above the limit through `claim`, never negative.
 */
export class SlotPool {
  #active = 0;
  /** When the pauses end of slots that are no longer held and not free yet. */
  readonly #settlingUntil: number[] = [];

  /** Where replicas share the limit: how many of it are this one's to use. −1 = all. */
  #granted = -1;
  #pausesCount = true;

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
    if (this.#granted >= 0) return (this.#pausesCount ? this.occupied : this.#active) < this.#granted;
    return this.#active + this.#settlingUntil.length < this.limit;
  }

  /**
   * The limit is shared: `count` slots of it are this replica's to use, from now on. `pausesCount`: whether one that is in
   * the pause after an exchange is among them, or was given back to all.
   */
  grant(count: number, pausesCount: boolean): void {
    this.#granted = count;
    this.#pausesCount = pausesCount;
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
    // Other replicas hold them.
    if (this.#settlingUntil.length === 0) return null;
    return this.#active < this.limit ? Math.min(...this.#settlingUntil) : null;
  }

  /** As the log shows it: `1/4`, `1/∞`. */
  toString(): string {
    return fraction(this.#active, this.limit);
  }

  /** With those in their pause, and `beside` that are held otherwise: why nothing was free. */
  shownOccupied(beside = 0): string {
    return fraction(this.occupied + beside, this.limit);
  }
}

function fraction(count: number, limit: number): string {
  return `${count}/${limit === Infinity ? '∞' : limit}`;
}
