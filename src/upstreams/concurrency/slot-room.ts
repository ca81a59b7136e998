import type { Clock } from '../../common/time/clock.js';
import type { SetAlarm } from './alarm.js';
import { HoldTimes } from './hold-times.js';
import type { Holder, Placed, Seat } from './seat.js';
import type { SlotPool } from './slot-pool.js';
import type { Waiter } from './waiter.js';
import { type Sequence, WaitingLine } from './waiting-line.js';

/** Slots that several upstreams share beside their own limits: one machine. */
export interface SlotGroup {
  readonly id: string;
  readonly slots: SlotPool;
  readonly settleMs: number;
}

interface Meter {
  observe(seconds: number): void;
}

export interface SeatOptions {
  readonly slots: SlotPool;
  /** Pause between the end of an exchange and the next claim. */
  readonly settleMs: number;
  readonly hold: Meter;
  /** Time between two exchanges while somebody waited. */
  readonly idle: Meter;
}

export interface RoomTools {
  readonly clock: Clock;
  readonly setAlarm: SetAlarm;
  readonly sequence: Sequence;
  /** Somebody may be served now. */
  readonly freed: (room: SlotRoom) => void;
}

/**
 * All that wait for the same slots, whatever their models: of a group, or of one upstream. Lives with the configuration.
 * Owns the one line; never decides who is served.
 */
export class SlotRoom {
  readonly line: WaitingLine<Waiter>;
  readonly holds = new HoldTimes();
  readonly seats: RoomSeat[] = [];
  /** How many of those who wait have an entry that is only eligible after a time. */
  spillers = 0;
  /** Slots of the group that probes of this process hold in the store of all replicas, and not in `slots`. */
  sharedProbes = 0;
  /** When somebody looks whether a rest or a gate is over; null = nobody needs to. */
  lookAt: number | null = null;
  cancelLook: (() => void) | null = null;

  constructor(
    readonly tools: RoomTools,
    readonly group: SlotGroup | null,
  ) {
    this.line = new WaitingLine(tools.sequence);
  }

  /** Whether any of its upstreams has a slot to give, by slots alone. */
  get free(): boolean {
    if (this.group !== null && !this.group.slots.free) return false;
    return this.seats.some(({ slots }) => slots.free);
  }

  add(options: SeatOptions): RoomSeat {
    const seat = new RoomSeat(this, options);
    this.seats.push(seat);
    return seat;
  }

  /** See {@link Seat.holdForProbe}. */
  holdForProbe(): (() => void) | null {
    const { group, tools } = this;
    if (group === null) return () => {};
    if (group.slots.occupied > 0 || this.line.size > 0) return null;
    if (!group.slots.claim()) return null;
    return () => this.settle([group.slots], group.settleMs, tools.clock.now());
  }

  /** Gives slots back after a pause, in which they count as taken. */
  settle(pools: readonly SlotPool[], pauseMs: number, now: number, then?: () => void): void {
    const { freed, setAlarm } = this.tools;
    const until = now + pauseMs;
    const over = () => {
      then?.();
      freed(this);
    };
    if (pauseMs === 0) {
      for (const pool of pools) pool.release();
      over();
      return;
    }
    for (const pool of pools) pool.settle(until);
    setAlarm(pauseMs, () => {
      for (const pool of pools) pool.settled(until);
      over();
    });
  }
}

/** An upstream's place in its room. */
export class RoomSeat implements Seat {
  readonly slots: SlotPool;
  readonly #pools: readonly SlotPool[];
  /** Since when a slot is free while somebody waits. */
  #idleSince: number | null = null;

  constructor(
    readonly room: SlotRoom,
    private readonly options: SeatOptions,
  ) {
    this.slots = options.slots;
    this.#pools = room.group === null ? [options.slots] : [options.slots, room.group.slots];
  }

  get free(): boolean {
    return this.slots.free && this.room.group?.slots.free !== false;
  }

  claim(holder: Holder): boolean {
    if (!this.free) return false;
    for (const pool of this.#pools) pool.claim();
    this.room.holds.began(holder);
    if (this.#idleSince !== null) {
      this.options.idle.observe((holder.startedAt - this.#idleSince) / 1000);
      this.#idleSince = null;
    }
    return true;
  }

  release(holder: Holder): void {
    const { line, holds, tools } = this.room;
    const { hold, settleMs } = this.options;
    const now = tools.clock.now();
    hold.observe(holds.ended(holder, now) / 1000);
    this.room.settle(this.#pools, settleMs, now, () => {
      if (line.size > 0) this.#idleSince ??= tools.clock.now();
    });
  }

  holdForProbe(): (() => void) | null {
    return this.room.holdForProbe();
  }

  estimateMs({ order, priority }: Placed, now: number): number | null {
    const { group, holds, line } = this.room;
    const nextMs = holds.nextFreeMs(now);
    if (nextMs === null || holds.meanMs === null) return null;
    const limit = Math.min(this.slots.limit, group?.slots.limit ?? Infinity);
    return nextMs + (holds.meanMs * line.ahead(priority, order)) / limit;
  }

  /** What a refused request should wait before it comes again; null without data. */
  get retryMs(): number | null {
    const { group, holds, line } = this.room;
    if (holds.meanMs === null) return null;
    const limit = Math.min(this.slots.limit, group?.slots.limit ?? Infinity);
    return (holds.meanMs * (line.size + 1)) / limit;
  }

  /** When the pause ends that is all that keeps it from being claimed; 0 = it is free, null = its slots are held. */
  get settlingUntil(): number | null {
    const own = this.slots.settlingUntil;
    const shared = this.room.group === null ? 0 : this.room.group.slots.settlingUntil;
    return own === null || shared === null ? null : Math.max(own, shared);
  }

  /** Nobody who waits can use its free slot: it is not kept idle by this side. */
  unused(): void {
    this.#idleSince = null;
  }

  toString(): string {
    const { group } = this.room;
    const own = this.slots.shownOccupied();
    return group === null ? own : `${own} ${group.id}=${group.slots.shownOccupied(this.room.sharedProbes)}`;
  }
}
