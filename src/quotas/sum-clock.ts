import { partMsOf, type SumUse, type SumWindow } from '../state/shared-sums.js';
import type { Calendar } from './window/calendar.js';
import type { Use } from './window/quota-window.js';

/** How the store and this process speak of the uses of one quota. Made once for each. */
export class SumClock {
  constructor(
    readonly window: SumWindow,
    private readonly calendar: Calendar,
  ) {}

  /** Begin of the part of time in which it counts, by the clock of this process. */
  partOf(atMs: number): number {
    if (this.window.kind !== 'sliding') return this.calendar(atMs).startMs;
    const partMs = partMsOf(this.window.lengthMs);
    return Math.floor(atMs / partMs) * partMs;
  }

  /** Windows have names, moments have an age: the clocks of replicas have nothing else in common. */
  told(uses: Iterable<Use>, nowMs: number): SumUse[] {
    const sliding = this.window.kind === 'sliding';
    return Array.from(uses, ([atMs, amount]): SumUse => [
      sliding ? Math.max(0, Math.round(nowMs - atMs)) : this.partOf(atMs),
      amount,
    ]);
  }

  /** As late as anything in a part can have been. */
  heard(parts: ReadonlyMap<number, number>, storeMs: number, nowMs: number): Use[] {
    const { window } = this;
    if (window.kind !== 'sliding') return [...parts];
    const lastMs = partMsOf(window.lengthMs) - 1;
    return Array.from(parts, ([part, amount]): Use => [
      Math.min(nowMs, nowMs - storeMs + part + lastMs),
      amount,
    ]);
  }
}
