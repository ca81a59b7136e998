import type { Clock } from '../../common/time/clock.js';
import type { Upstream } from '../upstream.js';
import type { SetAlarm } from './alarm.js';
import { changesMs, type Claim, type Claimable, opensMs } from './claimable.js';
import { nextToGo } from './going-elsewhere.js';
import { type Choice, choose, pick } from './pick.js';
import type { RoomSeat, SlotRoom } from './slot-room.js';
import { excluded, type SpillReason } from './spill.js';
import {
  CALLED,
  type Unserved,
  outcomeOf,
  type UnservedReason,
  type WaitEnd,
  type WaitResult,
  type Waiter,
} from './waiter.js';

export interface DispatcherTools {
  readonly clock: Clock;
  readonly setAlarm: SetAlarm;
  /** The seat of an upstream that can be waited for; undefined where nobody ever waits. */
  readonly seatOf: (upstream: Upstream) => RoomSeat | undefined;
  readonly spilled: (model: string, upstream: Upstream, reason: SpillReason) => void;
}

/** Somebody who can get slots from elsewhere for those who wait. */
export interface RoomWatcher {
  /** Somebody waits here and got nothing. */
  wanted(room: SlotRoom): void;
}

/**
 * Hands slots to those who wait, in the step in which they become free: no polling, and no newcomer comes between. Owns
 * the alarms of those who wait and of the rooms whose upstreams rest; costs nothing between two events. Lives as long as
 * the service.
 */
export class Dispatcher {
  #waiting = 0;
  /** Those who wait for something else than a slot: no line knows them. */
  readonly #attending = new Set<Waiter>();
  #closed = false;
  #watcher: RoomWatcher | null = null;

  constructor(private readonly tools: DispatcherTools) {}

  /** How many wait, for whatever. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Told whenever somebody waits for what this replica does not have in hand. */
  set watcher(watcher: RoomWatcher) {
    this.#watcher = watcher;
  }

  /** How a request that waits chooses. */
  choice(waiter: Waiter): Choice {
    return this.#choiceOf(waiter, false);
  }

  /** The candidate a request gets right now, as a newcomer: after all who wait for the same slots. */
  claim<C extends Claimable>(
    candidates: readonly C[],
    tried: ReadonlySet<Upstream> | null,
    waiter: Waiter | null,
    full = false,
  ): Claim<C> | null {
    const now = this.tools.clock.now();
    // What a rest or a gate kept closed may have opened without a word.
    if (this.#waiting > 0) for (const { upstream } of candidates) this.#dispatchRoomOf(upstream);
    if (waiter === null) return pick(candidates, tried, now, null);
    return pick(candidates, tried, now, this.#choiceOf(waiter, full));
  }

  /**
   * Waits for a slot. The result is known at once where waiting makes no sense. `budgetMs`: how long at most; `inVain`: what
   * it is called when that time is over.
   */
  wait(
    waiter: Waiter,
    candidates: readonly Claimable[],
    tried: ReadonlySet<Upstream> | null,
    budgetMs: number,
    inVain: UnservedReason = 'queue_timeout',
  ): WaitResult | Promise<WaitResult> {
    if (this.#closed) return { unserved: 'shutting_down' };
    const now = this.tools.clock.now();
    waiter.candidates = candidates;
    waiter.tried = tried;
    waiter.spills = candidates.some(({ entry }) => entry.spill !== null);
    waiter.budgetMs = budgetMs;
    waiter.inVain = inVain;
    const soonestMs = this.#opensMs(waiter, now);
    // Trap: a wait that was over before may be so by a fraction, and what is open opens in no less than nothing.
    if (soonestMs > Math.max(0, budgetMs) || soonestMs === Infinity) return { unserved: 'closed' };
    if (budgetMs <= 0) {
      // Its time went by where no wait of the queue was counted.
      if (waiter.hadPlace && inVain === 'queue_timeout')
        waiter.queue?.count('timeout', waiter.waitedMs(now) / 1000);
      return { unserved: inVain };
    }
    const refused = this.#makeRoom(waiter);
    if (refused !== null) return refused;
    // Only who attends is called.
    const result = waiter.begin(now) as Promise<WaitResult>;
    this.#join(waiter, now);
    return result;
  }

  /**
   * Waits in the queue of its model for something that is no slot: until it is `called`, or as any wait may end. The result
   * is known at once where there is no room.
   */
  attend(waiter: Waiter, budgetMs: number): Unserved | Promise<WaitEnd> {
    if (this.#closed) return { unserved: 'shutting_down' };
    waiter.candidates = [];
    waiter.tried = null;
    waiter.spills = false;
    waiter.budgetMs = budgetMs;
    waiter.inVain = 'queue_timeout';
    if (budgetMs <= 0) return { unserved: 'queue_timeout' };
    const refused = this.#makeRoom(waiter);
    if (refused !== null && 'unserved' in refused) return refused;
    const now = this.tools.clock.now();
    const result = waiter.begin(now);
    this.#attending.add(waiter);
    this.#join(waiter, now);
    return result;
  }

  /** What it attended for has come. */
  called(waiter: Waiter): void {
    this.#end(waiter, CALLED);
  }

  /** Whoever waited has gone: no slot, no line, no alarm knows it any more. */
  leave(waiter: Waiter): void {
    this.#end(waiter, { unserved: 'left' });
  }

  /** Those who wait look anew at what is the matter. */
  sendBack(rooms: Iterable<SlotRoom>): void {
    for (const room of rooms) {
      const standing = Array.from(room.line.inOrder(), ({ waiter }) => waiter);
      for (const waiter of standing) this.#end(waiter, { unserved: 'left' });
    }
  }

  /** Nobody waits any more, now or later. */
  close(rooms: Iterable<SlotRoom>): void {
    this.#closed = true;
    for (const waiter of this.#attending) this.#end(waiter, { unserved: 'shutting_down' });
    for (const room of rooms) {
      for (const { waiter } of room.line.everybody()) this.#end(waiter, { unserved: 'shutting_down' });
    }
  }

  /** Something may be free, or open, in this room. */
  dispatch(room: SlotRoom): void {
    if (room.line.size === 0) return;
    const now = this.tools.clock.now();
    room.line.age(now);
    while (room.free && this.#serveFirst(room, now));
    for (const seat of room.seats) seat.unused();
    // Free, and nobody could use it: something rests, or a gate has closed without a word.
    const closed = room.line.size > 0 && room.free;
    // Whose estimate has grown may go elsewhere.
    if (closed || room.spillers > 0) this.#lookAround([room], now);
    if (closed) this.#watch(room, now);
    if (room.line.size > 0) this.#watcher?.wanted(room);
  }

  /** An upstream of this room began to rest, or rests longer. */
  rested(room: SlotRoom): void {
    if (room.line.size === 0) return;
    const now = this.tools.clock.now();
    for (const seat of room.seats) seat.unused();
    this.#lookAround([room], now);
    this.#watch(room, now);
  }

  #dispatchRoomOf(upstream: Upstream): void {
    const seat = this.tools.seatOf(upstream);
    if (seat === undefined || seat.room.line.size === 0 || !seat.free) return;
    this.dispatch(seat.room);
  }

  /** The first in line who can use what is free; others are passed by. */
  #serveFirst(room: SlotRoom, now: number): boolean {
    // Those of one model who have tried nothing are all alike.
    const passedBy = new Set<readonly Claimable[]>();
    for (const { waiter } of room.line.inOrder()) {
      const { candidates, spills, tried } = waiter;
      const alike = tried === null && !spills;
      if (alike && passedBy.has(candidates)) continue;
      if (this.#serve(waiter, now)) return true;
      if (alike) passedBy.add(candidates);
    }
    return false;
  }

  #serve(waiter: Waiter, now: number): boolean {
    const claim = pick(waiter.candidates, waiter.tried, now, this.#choiceOf(waiter, false));
    if (claim === null) return false;
    const room = this.tools.seatOf(claim.candidate.upstream)?.room;
    const ticket = room === undefined ? undefined : waiter.tickets.get(room);
    if (room !== undefined && ticket !== undefined) waiter.turns.set(room, room.line.serve(ticket));
    this.#end(waiter, claim);
    return true;
  }

  /** Takes those elsewhere whose entry with `spill_after` became eligible, and sends away who waits in vain. */
  #lookAround(rooms: readonly SlotRoom[], now: number): void {
    const standing = new Set(rooms.flatMap(({ line }) => line.everybody()).map(({ waiter }) => waiter));
    const spilling = new Set<Waiter>();
    const open = new Set<SlotRoom>();
    for (const waiter of standing) {
      if (!waiter.spills) continue;
      spilling.add(waiter);
      for (const room of waiter.tickets.keys()) if (room.free) open.add(room);
    }
    const goesTo = (waiter: Waiter) => this.#goesTo(waiter, now);
    for (let next = nextToGo(open, spilling, goesTo); next !== null; next = nextToGo(open, spilling, goesTo))
      this.#serve(next, now);
    for (const waiter of standing) {
      if (!waiter.waiting) continue;
      const leftMs = waiter.leftMs(now);
      const soonestMs = this.#opensMs(waiter, now);
      // Whose alarm is due just now has waited to the end.
      if (leftMs <= 0 && soonestMs < Infinity) this.#end(waiter, { unserved: waiter.inVain });
      else if (soonestMs > leftMs) this.#end(waiter, { unserved: 'closed' });
    }
  }

  /** The room in which it would get a slot now. */
  #goesTo(waiter: Waiter, now: number): SlotRoom | null {
    const { candidates, tried } = waiter;
    const chosen = candidates[choose(candidates, tried, now, this.#choiceOf(waiter, false))];
    return chosen === undefined ? null : (this.tools.seatOf(chosen.upstream)?.room ?? null);
  }

  /** Time until the first candidate that is left opens; slots are not looked at. Infinity where none is left. */
  #opensMs(waiter: Waiter, now: number): number {
    let soonestMs = Infinity;
    for (const candidate of waiter.candidates) {
      if (waiter.tried?.has(candidate.upstream) || excluded(candidate, waiter)) continue;
      soonestMs = Math.min(soonestMs, opensMs(candidate, now));
      if (soonestMs === 0) break;
    }
    return soonestMs;
  }

  /** A place in the queue of its model, at the cost of lower priorities where it must be. Null: it has one. */
  #makeRoom(waiter: Waiter): Claim<Claimable> | Unserved | null {
    const { queue } = waiter;
    if (queue === null || waiter.hadPlace || queue.hasRoomFor(waiter.bytes)) return null;
    if (waiter.spills) {
      const claim = this.claim(waiter.candidates, waiter.tried, waiter, true);
      if (claim !== null) return claim;
    }
    this.#age(waiter);
    const displaced = queue.displacedBy(waiter);
    if (displaced === null) return { unserved: 'queue_full' };
    for (const other of displaced) this.#end(other, { unserved: 'queue_full' });
    return null;
  }

  /** Who has waited long is not of the lowest priority any more. */
  #age({ candidates }: Waiter): void {
    const now = this.tools.clock.now();
    for (const { upstream } of candidates) this.tools.seatOf(upstream)?.room.line.age(now);
  }

  #join(waiter: Waiter, now: number): void {
    this.#waiting++;
    waiter.queue?.enter(waiter);
    let before = false;
    for (const candidate of waiter.candidates) {
      if (waiter.tried?.has(candidate.upstream) || excluded(candidate, waiter)) continue;
      const room = this.tools.seatOf(candidate.upstream)?.room;
      if (room === undefined) continue;
      const changeMs = changesMs(candidate, now);
      if (changeMs > 0) this.#lookWithin(room, changeMs, now);
      if (waiter.tickets.has(room)) continue;
      waiter.tickets.set(room, room.line.join(waiter, waiter.turns.get(room) ?? null));
      if (waiter.spills) room.spillers++;
      before ||= room.spillers > 0 && room.line.ahead(waiter.priority, waiter.order) < room.line.size - 1;
    }
    this.#arm(waiter, now);
    if (before)
      this.#lookAround(
        [...waiter.tickets.keys()].filter(({ spillers }) => spillers > 0),
        now,
      );
    this.#tellWatcher(waiter);
  }

  #end(waiter: Waiter, result: WaitEnd): void {
    if (!waiter.waiting) return;
    this.#waiting--;
    this.#attending.delete(waiter);
    waiter.queue?.leave(waiter);
    waiter.cancelAlarm?.();
    waiter.cancelAlarm = null;
    for (const [room, ticket] of waiter.tickets) {
      const wasFirst = this.#watcher !== null && room.line.first === ticket;
      room.line.leave(ticket);
      if (waiter.spills) room.spillers--;
      if (room.line.size === 0) this.#stopLooking(room);
      // Others compare themselves with the first in line: now that is somebody else.
      else if (wasFirst) this.#watcher?.wanted(room);
    }
    waiter.tickets.clear();
    const seconds = waiter.end(result, this.tools.clock.now()) / 1000;
    const outcome = outcomeOf(result);
    if (outcome !== null) waiter.queue?.count(outcome, seconds);
  }

  // ---- alarms

  /** One for each who waits: its deadline, or the next entry that becomes eligible by waiting. */
  #arm(waiter: Waiter, now: number): void {
    let nextMs = waiter.leftMs(now);
    if (waiter.spills) {
      const waitedMs = waiter.waitedMs(now);
      for (const { entry } of waiter.candidates) {
        const inMs = (entry.spill?.afterMs ?? 0) - waitedMs;
        if (inMs > 0) nextMs = Math.min(nextMs, inMs);
      }
    }
    waiter.cancelAlarm = this.tools.setAlarm(Math.max(0, nextMs), () => this.#rang(waiter));
  }

  #rang(waiter: Waiter): void {
    waiter.cancelAlarm = null;
    const now = this.tools.clock.now();
    if (waiter.spills && this.#serve(waiter, now)) return;
    if (waiter.leftMs(now) <= 0) {
      this.#end(waiter, { unserved: waiter.inVain });
      return;
    }
    this.#arm(waiter, now);
    this.#tellWatcher(waiter);
  }

  #tellWatcher({ tickets }: Waiter): void {
    if (this.#watcher === null) return;
    for (const room of tickets.keys()) this.#watcher.wanted(room);
  }

  /** One for each room: the next rest or gate that is over. */
  #lookWithin(room: SlotRoom, inMs: number, now: number): void {
    if (inMs === Infinity) return;
    const at = now + inMs;
    if (room.lookAt !== null && room.lookAt <= at) return;
    room.cancelLook?.();
    room.lookAt = at;
    room.cancelLook = this.tools.setAlarm(inMs, () => {
      this.#stopLooking(room);
      this.dispatch(room);
      this.#watch(room, this.tools.clock.now());
    });
  }

  #watch(room: SlotRoom, now: number): void {
    const seen = new Set<readonly Claimable[]>();
    let soonestMs = Infinity;
    for (const { waiter } of room.line.inOrder()) {
      if (seen.has(waiter.candidates)) continue;
      seen.add(waiter.candidates);
      for (const candidate of waiter.candidates) {
        const changeMs = changesMs(candidate, now);
        if (changeMs > 0 && this.tools.seatOf(candidate.upstream)?.room === room)
          soonestMs = Math.min(soonestMs, changeMs);
      }
    }
    this.#lookWithin(room, soonestMs, now);
  }

  #stopLooking(room: SlotRoom): void {
    room.cancelLook?.();
    room.cancelLook = null;
    room.lookAt = null;
  }

  #choiceOf(waiter: Waiter, full: boolean): Choice {
    return {
      patience: waiter,
      full,
      spilled: ({ upstream }: Claimable, reason: SpillReason) =>
        this.tools.spilled(waiter.queue?.model ?? '', upstream, reason),
    };
  }
}
