import type { Sum, SumMemory, SumState } from '../state/shared-sums.js';
import type { PlacedMeter } from './quota.registry.js';
import type { QuotaMeter } from './quota-meter.js';
import { PartedUses } from './parted-uses.js';
import { quotaKey } from './quota-place.js';
import { SumClock } from './sum-clock.js';
import { calendarOf, isOneMonth, offsetOf } from './window/calendar.js';
import type { Use } from './window/quota-window.js';

/** One quota that replicas count together: its meter here, and what the store has not been told of it. Lives as long as the meter. */
export class SharedQuota {
  readonly sum: Sum;
  readonly meter: QuotaMeter;
  readonly clock: SumClock;
  /** Booked on a share, and not told to the store. */
  readonly untold: PartedUses;
  /** The same, and told. */
  readonly told: PartedUses;
  /** Booked since the sums were asked for, and so not among them. */
  since = 0;
  /** Of this replica, as the store was told last before it was joined. */
  toldReserved = 0;
  /** Reserved tokens of others: replica → tokens. */
  readonly #others = new Map<string, number>();

  constructor(placed: PlacedMeter) {
    const { per, window } = placed.meter.quota;
    this.meter = placed.meter;
    this.sum = {
      name: `quota:${quotaKey(placed, placed.meter.quota)}`,
      window:
        window === 'sliding'
          ? { kind: 'sliding', lengthMs: per.ms }
          : isOneMonth(per.text)
            ? { kind: 'month' }
            : { kind: 'calendar', lengthMs: per.ms, offsetMs: offsetOf(per.ms) },
    };
    this.clock = new SumClock(this.sum.window, calendarOf(per));
    this.untold = new PartedUses(this.clock);
    this.told = new PartedUses(this.clock);
  }

  /** For a store that may have forgotten it. `untold` has been taken out. */
  memory(untold: readonly Use[], nowMs: number): SumMemory {
    this.toldReserved = this.meter.held;
    const known = [...this.meter.usedBefore(nowMs), ...this.told.uses];
    known.sort(([one], [other]) => one - other);
    const { clock, sum, toldReserved } = this;
    return {
      sum,
      known: clock.told(known, nowMs),
      untold: clock.told(untold, nowMs),
      reserved: toldReserved,
    };
  }

  /** What the store says stands for all that is known here. */
  rejoin({ parts, reserved }: SumState, storeMs: number, self: string, nowMs: number): void {
    this.told.takeAll();
    this.meter.rejoin(this.clock.heard(parts, storeMs, nowMs), nowMs);
    if (this.since !== 0) this.meter.book(this.since, nowMs);
    this.#others.clear();
    for (const [replica, tokens] of reserved) if (replica !== self) this.#others.set(replica, tokens);
    this.#tellReserved();
  }

  /** Somebody added to it. */
  counted(part: number, amount: number, nowMs: number): void {
    // It may come when the window has turned.
    if (this.sum.window.kind !== 'sliding' && part < this.clock.partOf(nowMs)) return;
    this.meter.adopt(amount, nowMs);
  }

  reservedBy(replica: string, tokens: number): void {
    if (tokens > 0) this.#others.set(replica, tokens);
    else if (!this.#others.delete(replica)) return;
    this.#tellReserved();
  }

  #tellReserved(): void {
    let all = 0;
    for (const tokens of this.#others.values()) all += tokens;
    this.meter.reservedElsewhere(all);
  }
}
