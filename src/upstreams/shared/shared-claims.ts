import type { Clock } from '../../common/time/clock.js';
import { setNodeAlarm } from '../concurrency/alarm.js';
import type { Claim, Claimable } from '../concurrency/claimable.js';
import type { SlotRooms } from '../concurrency/slot-rooms.js';
import type { RoomWatcher } from '../concurrency/dispatcher.js';
import type { SlotRoom } from '../concurrency/slot-room.js';
import type { Waiter } from '../concurrency/waiter.js';
import type { Backoff } from '../backoff/backoff.js';
import type { Upstream } from '../upstream.js';
import { RoomPursuit } from './room-pursuit.js';
import { restNameOf } from './rest-name.js';
import { SharedPlace } from './shared-place.js';
import { SharedPool } from './shared-pool.js';
import type { SharedSlots } from './shared-slots.js';
import { type Want, wants } from './wants.js';

/**
 * Claims where replicas share the limits: asks the store for what is not in hand, then chooses as any process does. Owns the
 * pursuit of slots for those who wait. Lives as long as the service.
 */
export class SharedClaims implements RoomWatcher {
  readonly #pursuits = new Map<SlotRoom, RoomPursuit>();

  constructor(
    private readonly slots: SharedSlots,
    private readonly rooms: SlotRooms,
    upstreams: Iterable<Upstream>,
    private readonly clock: Clock,
  ) {
    const all = [...upstreams];
    const groups = new Map<SlotRoom, SharedPool>();
    const trials = trialsOf(all);
    for (const upstream of all) {
      const { backoff, recovery } = upstream;
      this.#add(upstream, groups, (recovery === null ? null : trials.get(backoff)) ?? null);
    }
    rooms.dispatcher.watcher = this;
    // Named first: a closure that is put on an object at once costs the collector dearly.
    const changed = () => this.#lookEverywhere();
    const woken = (pool: string, inMs: number) => this.#woken(pool, inMs);
    const lost = () => {
      if (slots.rejecting) rooms.dispatcher.sendBack(rooms.all);
    };
    slots.onChange = changed;
    slots.onLost = lost;
    slots.onWake = woken;
  }

  /** See `ConcurrencyService.claim`. Never rejects. */
  claim<C extends Claimable>(
    candidates: readonly C[],
    tried: ReadonlySet<Upstream> | null,
    waiter: Waiter | null,
  ): Claim<C> | null | Promise<Claim<C> | null> {
    const { dispatcher } = this.rooms;
    const choice = waiter === null ? null : dispatcher.choice(waiter);
    const wanted = wants(candidates, tried, this.clock.now(), choice).filter((want) => this.slots.asks(want));
    if (wanted.length === 0) return dispatcher.claim(candidates, tried, waiter);
    return this.#ask(wanted, candidates, tried, waiter);
  }

  async #ask<C extends Claimable>(
    wanted: readonly Want[],
    candidates: readonly C[],
    tried: ReadonlySet<Upstream> | null,
    waiter: Waiter | null,
  ): Promise<Claim<C> | null> {
    let claim: Claim<C> | null = null;
    // Those who wait for it here come first.
    const use = () => {
      claim = this.rooms.dispatcher.claim(candidates, tried, waiter);
    };
    const { got } = await this.slots.ask(wanted, [], use);
    return got === 'nothing' ? this.rooms.dispatcher.claim(candidates, tried, waiter) : claim;
  }

  /** See {@link Seat.holdForProbe}; where the store is away, what this replica has of the group decides. */
  async holdForProbe(upstream: Upstream): Promise<(() => void) | null> {
    const { config, seat } = upstream;
    const pool = config.slotGroup === null ? undefined : this.slots.pool(`g:${config.slotGroup.id}`);
    if (pool === undefined || !this.slots.ok) return seat === null ? () => {} : seat.holdForProbe();
    const giveBack = await this.slots.holdForProbe(pool, config.slotGroup?.settleMs ?? 0);
    const room = this.rooms.seatOf(upstream)?.room;
    if (giveBack === null || room === undefined) return giveBack;
    room.sharedProbes++;
    return () => {
      room.sharedProbes--;
      giveBack();
    };
  }

  wanted(room: SlotRoom): void {
    this.#pursuits.get(room)?.pursue();
  }

  #add(upstream: Upstream, groups: Map<SlotRoom, SharedPool>, trials: SharedPlace | null): void {
    const room = this.rooms.seatOf(upstream)?.room ?? null;
    const limited = upstream.slots.limit < Infinity;
    const own = limited || room?.group ? new SharedPool(`u:${upstream.id}`, upstream.slots) : null;
    const pools = limited && own !== null ? [own] : [];
    if (room?.group) {
      const { group } = room;
      const pool = groups.get(room) ?? new SharedPool(`g:${group.id}`, group.slots);
      groups.set(room, pool);
      pools.push(pool);
    }
    const place = pools.length === 0 ? null : new SharedPlace(upstream.slots, pools, limited ? null : own);
    this.slots.add(upstream, place, trials);
    const noted = room === null ? undefined : (groups.get(room) ?? pools[0] ?? trials?.pools[0]);
    if (room === null || noted === undefined || this.#pursuits.has(room)) return;
    const tools = {
      slots: this.slots,
      dispatcher: this.rooms.dispatcher,
      clock: this.clock,
      setAlarm: setNodeAlarm,
    };
    this.#pursuits.set(room, new RoomPursuit(room, noted, tools));
  }

  #lookEverywhere(): void {
    for (const [room] of this.#pursuits) this.rooms.dispatcher.dispatch(room);
  }

  #woken(name: string, inMs: number): void {
    for (const pursuit of this.#pursuits.values()) if (pursuit.pool.name === name) pursuit.woken(inMs);
  }
}

/** The places of trials of each counter. Where its upstreams offer different numbers of them, the least is what is shared out. */
function trialsOf(upstreams: readonly Upstream[]): ReadonlyMap<Backoff | null, SharedPlace> {
  const places = new Map<Backoff | null, SharedPlace>();
  for (const { backoff, config, recovery } of upstreams) {
    const name = restNameOf(config);
    if (backoff === null || recovery === null || name === null || places.has(backoff)) continue;
    const alike = upstreams.flatMap((one) => (one.backoff === backoff ? (one.recovery?.places ?? []) : []));
    const pool = new SharedPool(`t:${name}`, backoff.trialSlots, Math.min(...alike));
    places.set(backoff, new SharedPlace(backoff.trialSlots, [pool]));
  }
  return places;
}
