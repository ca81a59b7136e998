import type { WaitNote } from '../../state/shared-store.js';
import type { SetAlarm } from '../concurrency/alarm.js';
import type { Dispatcher } from '../concurrency/dispatcher.js';
import type { SlotRoom } from '../concurrency/slot-room.js';
import type { Waiter } from '../concurrency/waiter.js';
import type { Upstream } from '../upstream.js';
import type { SharedPool } from './shared-pool.js';
import type { SharedSlots } from './shared-slots.js';
import { type Want, wants } from './wants.js';

/** Nobody need wake a replica for it to look, at the latest. */
const LOOK_MS = 1000;
/** So many upstreams of a room are asked for at once. */
const ASKS_AT_MOST = 16;

export interface PursuitTools {
  readonly slots: SharedSlots;
  readonly dispatcher: Dispatcher;
  readonly now: () => number;
  readonly setAlarm: SetAlarm;
}

/**
 * Gets slots from the store for those who wait in one room, while somebody does: asks once something may have become free,
 * and is noted there meanwhile, to be woken. One question at a time. Lives with the room.
 */
export class RoomPursuit {
  #asking = false;
  #again = false;
  /** Whether the store may still hold a note, or a place, for this replica. */
  #noted = false;
  #cancelAlarm: (() => void) | null = null;
  #alarmAt = Infinity;

  constructor(
    readonly room: SlotRoom,
    /** Where this replica is noted: of the group, or of the one upstream. */
    readonly pool: SharedPool,
    private readonly tools: PursuitTools,
  ) {}

  /** Somebody waits, or something may be free. */
  pursue(): void {
    if (this.#asking) {
      this.#again = true;
      return;
    }
    if (this.room.line.size === 0) {
      this.#rest();
      return;
    }
    this.#asking = true;
    this.#run()
      .finally(() => {
        this.#asking = false;
      })
      .then(
        () => this.#after(),
        // Ours, and nothing the store did: told by the process as any error nobody expects; the alarm looks again.
        (error: unknown) => {
          this.#wakeIn(LOOK_MS);
          throw error;
        },
      );
  }

  /** A place is kept for this replica, from `inMs` on. */
  woken(inMs: number): void {
    this.#noted = true;
    if (inMs > 0 && this.room.line.size > 0) this.#wakeIn(inMs);
    else this.pursue();
  }

  async #run(): Promise<void> {
    for (;;) {
      this.#again = false;
      const { asks, note } = this.#wanted();
      if (note === null) return;
      if (asks.length === 0) {
        this.#wakeIn(LOOK_MS);
        return;
      }
      this.#noted = true;
      const use = () => this.tools.dispatcher.dispatch(this.room);
      const { againMs, got } = await this.tools.slots.ask(asks, [note], use);
      if (got === 'nothing') {
        // At once what was missed while it was asked, else when something lapses.
        if (this.#again) continue;
        this.#wakeIn(Math.min(LOOK_MS, againMs ?? LOOK_MS));
        return;
      }
      if (got === 'given back') {
        this.#wakeIn(LOOK_MS);
        return;
      }
    }
  }

  #after(): void {
    if (this.room.line.size === 0) this.#rest();
  }

  /** What those who wait could use, in the order of the line, and how their first stands. */
  #wanted(): { asks: Want[]; note: WaitNote | null } {
    const now = this.tools.now();
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

  /** Nobody waits any more. */
  #rest(): void {
    this.#cancelAlarm?.();
    this.#cancelAlarm = null;
    this.#alarmAt = Infinity;
    if (!this.#noted) return;
    this.#noted = false;
    this.tools.slots.forget([this.pool]);
  }

  #wakeIn(ms: number): void {
    const at = this.tools.now() + Math.max(1, ms);
    if (this.#alarmAt <= at) return;
    this.#cancelAlarm?.();
    this.#alarmAt = at;
    this.#cancelAlarm = this.tools.setAlarm(Math.max(1, ms), () => {
      this.#cancelAlarm = null;
      this.#alarmAt = Infinity;
      this.pursue();
    });
  }
}
