import type { Clock } from '../../common/time/clock.js';
import { ignoreUnavailable, type SharedPart, type SharedState } from '../../state/shared-state.js';
import type { ClaimAnswer, ClaimAsk, EnrolAnswer, RenewAnswer, WaitNote } from '../../state/shared-store.js';
import type { Pool, PooledLease, StoreEvent } from '../../state/shared-types.js';
import type { Lease } from '../lease.js';
import type { Upstream } from '../upstream.js';
import { restNameOf } from './rest-name.js';
import type { Permit, SharedPlace } from './shared-place.js';
import type { SharedPool } from './shared-pool.js';
import type { SlotKeeper } from './slot-keeper.js';
import type { Want } from './wants.js';

/** What came of asking the store. */
export interface Asked {
  readonly got: 'used' | 'given back' | 'nothing';
  /** When it is worth asking again at the soonest. */
  readonly againMs: number | null;
}

const NOTHING: Asked = { got: 'nothing', againMs: null };

/** A lease that could not be renewed for that part of its time is as good as lost. */
const STRICT_PART = 0.8;

/**
 * The slots, and the places of trials, that this replica has of limits which all replicas share: gets them from the store, gives
 * them back, has them renewed. Who uses them is decided by `pick` and the dispatcher, which see them as free slots. Lives as long as the
 * service.
 */
export class SharedSlots implements SharedPart, SlotKeeper {
  readonly #places = new Map<Upstream, SharedPlace>();
  /** Of trials: upstreams that share a counter share it. */
  readonly #trials = new Map<Upstream, SharedPlace>();
  readonly #all = new Set<SharedPlace>();
  readonly #pools = new Map<string, SharedPool>();
  /** What probes hold of groups. */
  readonly #probes = new Set<PooledLease>();
  #numbers = 0;
  #strictWatch: NodeJS.Timeout | null = null;
  /** Told when slots may be had that could not be had before. */
  onChange: (() => void) | null = null;
  /** Told when the store has gone. */
  onLost: (() => void) | null = null;
  onWake: ((pool: string, inMs: number) => void) | null = null;

  constructor(
    private readonly state: SharedState,
    private readonly clock: Clock,
  ) {
    state.join(this);
    if (state.onError !== 'strict') return;
    this.#strictWatch = setInterval(() => this.#revokeStale(), state.leaseMs / 15);
    this.#strictWatch.unref();
  }

  /** Called once for each upstream: `place` of its slots, null where it has no limit, its own or a group's; `trials` likewise. */
  add(upstream: Upstream, place: SharedPlace | null, trials: SharedPlace | null): void {
    if (place !== null) this.#places.set(upstream, place);
    if (trials !== null) this.#trials.set(upstream, trials);
    for (const one of [place, trials]) {
      if (one === null) continue;
      this.#all.add(one);
      for (const pool of one.pools) this.#pools.set(pool.name, pool);
      upstream.keeper = this;
    }
  }

  close(): void {
    if (this.#strictWatch !== null) clearInterval(this.#strictWatch);
  }

  /** Whether what is wanted comes from the store at this moment. */
  asks(want: Want): boolean {
    return this.state.ok && this.#placesFor(want).length > 0;
  }

  /**
   * One round trip: the first of these that is free anywhere. `use` takes it in the same step in which it came, so that
   * no other answer comes between; what it does not take is given back.
   */
  async ask(wanted: readonly Want[], waits: readonly WaitNote[], use: () => void): Promise<Asked> {
    const asked = wanted.flatMap((want) => {
      const places = this.#placesFor(want);
      return places.length === 0 ? [] : [{ want, places }];
    });
    if (!this.state.ok || asked.length === 0) return NOTHING;
    const id = this.#newId();
    const sentAt = this.clock.now();
    let answer: ClaimAnswer;
    try {
      const asks = asked.map(({ want }) => this.#askFor(want));
      answer = await this.state.store.claim(id, asks, waits);
    } catch (error) {
      ignoreUnavailable(error);
      return NOTHING;
    }
    const { granted, heldBackMs, lapseMs } = answer;
    const places = granted === null ? undefined : asked[granted]?.places;
    if (places === undefined) return { got: 'nothing', againMs: heldBackMs > 0 ? heldBackMs : lapseMs };
    // Lost meanwhile: whatever is not told when it is back is struck out there.
    if (!this.state.ok) return NOTHING;
    for (const place of places) place.add({ id, renewedAt: sentAt });
    use();
    const [first] = places;
    const got = first !== undefined && first.surplus > 0 ? 'given back' : 'used';
    // The place of a trial may be left over alone: the rest had ended meanwhile.
    for (const place of places) if (place.surplus > 0) this.#giveBack(place, 0);
    return { got, againMs: null };
  }

  took(lease: Lease): void {
    this.#places.get(lease.upstream)?.leases.add(lease);
  }

  givesBack(lease: Lease): void {
    const { upstream } = lease;
    const place = this.#places.get(upstream);
    place?.leases.delete(lease);
    // Without a store a slot stays with who holds it, for the next.
    if (!this.state.ok) return;
    if (place !== undefined) this.#giveBack(place, upstream.config.settleMs);
    const trials = lease.trial ? this.#trials.get(upstream) : undefined;
    if (trials !== undefined) this.#giveBack(trials, 0);
  }

  /** The slot of a group for a background probe, while nothing runs there at any replica. Null: not now. */
  async holdForProbe(pool: SharedPool, pauseMs: number): Promise<(() => void) | null> {
    const id = this.#newId();
    const alone: Pool = { name: pool.name, limit: 1 };
    try {
      const { store } = this.state;
      const { granted } = await store.claim(id, [{ pools: [{ pool: alone, held: 0 }], rest: null }], []);
      if (granted === null) return null;
    } catch (error) {
      ignoreUnavailable(error);
      return null;
    }
    const lease: PooledLease = { id, pools: [{ pool, held: pool.inHand }] };
    this.#probes.add(lease);
    return () => {
      this.#probes.delete(lease);
      if (this.state.ok) this.state.store.release(lease, pauseMs).catch(ignoreUnavailable);
    };
  }

  /** Nothing is served without the store. */
  get rejecting(): boolean {
    return this.state.rejecting;
  }

  /** Whether the store decides at this moment. */
  get ok(): boolean {
    return this.state.ok;
  }

  forget(pools: readonly SharedPool[]): void {
    if (this.state.ok && pools.length > 0) this.state.store.forget(pools).catch(ignoreUnavailable);
  }

  pool(name: string): SharedPool | undefined {
    return this.#pools.get(name);
  }

  // ---- the life of the store

  leases(): readonly PooledLease[] {
    const ofPlaces = [...this.#all].flatMap(({ permits, pools }) =>
      permits.map(({ id }) => ({ id, pools: pools.map((pool) => ({ pool, held: pool.inHand })) })),
    );
    return [...ofPlaces, ...this.#probes];
  }

  pools(): readonly Pool[] {
    return [...this.#pools.values()];
  }

  enrolling(): void {
    const now = this.clock.now();
    for (const { active, permits } of this.#all) {
      permits.length = Math.min(permits.length, active);
      while (permits.length < active) permits.push({ id: this.#newId(), renewedAt: now });
    }
    for (const pool of this.#pools.values()) pool.freeze();
  }

  joined({ excesses }: EnrolAnswer): void {
    for (const pool of this.#pools.values()) {
      pool.told();
      pool.forgetExcesses();
    }
    const now = this.clock.now();
    for (const place of this.#all) {
      for (const permit of place.permits) permit.renewedAt = now;
      // What ended on the way.
      while (place.surplus > 0) {
        const permit = place.permits.pop();
        if (permit !== undefined) this.#tellRelease(place, permit, 0);
      }
    }
    for (const { pool, replica, slots } of excesses) this.#pools.get(pool)?.heard(replica, slots);
    this.onChange?.();
  }

  renewed({ lost }: RenewAnswer, sentAt: number): void {
    const gone = new Set(lost);
    for (const place of this.#all) {
      let revoked = 0;
      for (const permit of place.permits) {
        permit.renewedAt = Math.max(permit.renewedAt, sentAt);
        if (gone.has(permit.id)) revoked++;
      }
      if (this.state.onError === 'strict') this.#revoke(place, revoked);
    }
  }

  lost(): void {
    for (const pool of this.#pools.values()) {
      if (this.state.onError === 'local' && this.state.replicas > 0) pool.keep();
      else pool.shut();
    }
    this.onLost?.();
  }

  alone(): void {
    if (this.state.onError !== 'local' || this.state.replicas === 0) return;
    for (const pool of this.#pools.values()) pool.share(this.state.replicas);
    this.onChange?.();
  }

  happened(event: StoreEvent): void {
    if (event.kind === 'excess') this.#pools.get(event.pool)?.heard(event.replica, event.slots);
    else if (event.kind === 'gone') for (const pool of this.#pools.values()) pool.heard(event.replica, 0);
    else if (event.kind === 'wake') this.onWake?.(event.pool, event.inMs);
  }

  // ---- own

  #newId(): string {
    return `${this.state.store.replica}:${++this.#numbers}`;
  }

  /** What a request asks for: slots of the upstream and its group, and the place of a trial where it is one. */
  #placesFor({ trial, upstream }: Want): SharedPlace[] {
    const place = this.#places.get(upstream);
    const trials = trial ? this.#trials.get(upstream) : undefined;
    return [place, trials].filter((one) => one !== undefined);
  }

  #askFor({ trial, upstream }: Want): ClaimAsk {
    const pools = (this.#places.get(upstream)?.pools ?? []).map((pool) => ({ pool, held: pool.inHand }));
    if (!trial) return { pools, rest: restNameOf(upstream.config) };
    const limit = upstream.recovery?.places ?? 0;
    const trials = this.#trials.get(upstream)?.pools ?? [];
    const places = trials.map(({ inHand, name }) => ({ pool: { name, limit }, held: inHand }));
    return { pools: [...pools, ...places], rest: null };
  }

  #giveBack(place: SharedPlace, pauseMs: number): void {
    const permit = place.takeOut();
    if (permit !== null) this.#tellRelease(place, permit, pauseMs);
  }

  #tellRelease({ pools }: SharedPlace, { id }: Permit, pauseMs: number): void {
    const lease = { id, pools: pools.map((pool) => ({ pool, held: pool.inHand })) };
    // Where this is not heard the lease lapses.
    this.state.store.release(lease, pauseMs).catch(ignoreUnavailable);
  }

  #revokeStale(): void {
    const before = this.clock.now() - this.state.leaseMs * STRICT_PART;
    for (const place of this.#places.values()) {
      const stale = place.permits.filter(({ renewedAt }) => renewedAt < before).length;
      this.#revoke(place, stale);
    }
  }

  #revoke({ leases }: SharedPlace, count: number): void {
    for (const lease of [...leases].slice(0, count)) lease.revoke();
  }
}
