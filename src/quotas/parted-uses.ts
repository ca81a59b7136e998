import type { SumClock } from './sum-clock.js';
import type { Use } from './window/quota-window.js';

/** More than a sliding window has. */
const MOST_PARTS = 130;

/** Uses of one quota by parts of time, the youngest of them: bounded, however long somebody is away. */
export class PartedUses {
  #parts = new Map<number, number>();

  constructor(private readonly clock: SumClock) {}

  add(amount: number, atMs: number): void {
    const part = this.clock.partOf(atMs);
    this.#parts.set(part, (this.#parts.get(part) ?? 0) + amount);
    if (this.#parts.size <= MOST_PARTS) return;
    this.#parts.delete(Math.min(...this.#parts.keys()));
  }

  addAll(uses: readonly Use[]): void {
    for (const [part, amount] of uses) this.add(amount, part);
  }

  get uses(): readonly Use[] {
    return [...this.#parts].filter(([, amount]) => amount !== 0);
  }

  takeAll(): readonly Use[] {
    const { uses } = this;
    this.#parts = new Map();
    return uses;
  }
}
