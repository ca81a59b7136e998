import type { Clock } from '../../common/time/clock.js';
import type { WaitNote } from '../../state/shared-store.js';
import type { SetAlarm } from '../concurrency/alarm.js';
import type { Dispatcher } from '../concurrency/dispatcher.js';
import type { SlotRoom } from '../concurrency/slot-room.js';
import type { Waiter } from '../concurrency/waiter.js';
import type { Upstream } from '../upstream.js';
import { Pursuit } from './pursuit.js';
import type { Asked } from './shared-places.js';
import type { SharedPool } from './shared-pool.js';
import type { SharedSlots } from './shared-slots.js';
import { type Want, wants } from './wants.js';

/** So many upstreams of a room are asked for at once. */
const ASKS_AT_MOST = 16;

export interface PursuitTools {
  readonly slots: SharedSlots;
  readonly dispatcher: Dispatcher;
  readonly clock: Clock;
  readonly setAlarm: SetAlarm;
}

/** Slots, and places of trials, for those who wait in one room. */
export class RoomPursuit extends Pursuit {
  constructor(
    readonly room: SlotRoom,
    /** Where this replica is noted: of the group, or of the one upstream. */
    readonly pool: SharedPool,
    private readonly tools: PursuitTools,
  ) {
    super(tools.clock, tools.setAlarm);
  }

  protected get waiting(): boolean {
    return this.room.line.size > 0;
  }

  protected ask(): Promise<Asked> | null {
    const { asks, note } = this.#wanted();
    if (note === null || asks.length === 0) return null;
    const use = () => this.tools.dispatcher.dispatch(this.room);
    return this.tools.slots.ask(asks, [note], use);
  }

  protected forget(): void {
    this.tools.slots.forget([this.pool]);
  }

  /** What those who wait could use, in the order of the line, and how their first stands. */
  #wanted(): { asks: Want[]; note: WaitNote | null } {
    const now = this.tools.clock.now();
    const asks = new Map<Upstream, Want>();
    let first: { waiter: Waiter; priority: number } | null = null;
    const alike = new Set<unknown>();
    for (const { priority, waiter } of this.room.line.inOrder()) {
      first ??= { waiter, priority };
      const { candidates, spills, tried } = waiter;
      if (tried === null && !spills) {
        if (alike.has(candidates)) continue;
        alike.add(candidates);
      }
      for (const want of wants(candidates, tried, now, this.tools.dispatcher.choice(waiter))) {
        if (this.#isHere(want.upstream) && !asks.has(want.upstream)) asks.set(want.upstream, want);
      }
      if (asks.size >= ASKS_AT_MOST) break;
    }
    if (first === null) return { asks: [], note: null };
    const { priority, waiter } = first;
    return {
      asks: [...asks.values()],
      note: { pool: this.pool.name, priority, waitedMs: waiter.waitedMs(now) },
    };
  }

  #isHere({ slots }: Upstream): boolean {
    return this.room.seats.some((seat) => seat.slots === slots);
  }
}
