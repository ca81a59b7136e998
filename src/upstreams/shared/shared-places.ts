import type { Clock } from '../../common/time/clock.js';
import { ignoreUnavailable, type SharedPart, type SharedState } from '../../state/shared-state.js';
import type { ClaimAnswer, ClaimAsk, EnrolAnswer, RenewAnswer, WaitNote } from '../../state/shared-store.js';
import type { Pool, PooledLease, StoreEvent } from '../../state/shared-types.js';
import type { Permit, SharedPlace } from './shared-place.js';
import type { SharedPool } from './shared-pool.js';

/** What came of asking the store. */
export interface Asked {
  readonly got: 'used' | 'given back' | 'nothing';
  /** When it is worth asking again at the soonest. */
  readonly againMs: number | null;
  /** Nothing is given out at this time, whether or not it is free. */
  readonly heldBack?: boolean;
}

/** One of the things that are asked for at once, and the places it would come to: the first of these decides whether it is used. */
export interface PlacedAsk {
  readonly places: readonly SharedPlace[];
  readonly ask: ClaimAsk;
}

const NOTHING: Asked = { got: 'nothing', againMs: null };

/**
 * What this replica has of limits that all replicas share: gets it from the store, gives it back, has it renewed, and lives on
 * its share while the store is away. Who uses it is decided elsewhere. Lives as long as the service.
 */
export abstract class SharedPlaces implements SharedPart {
  protected readonly places = new Set<SharedPlace>();
  readonly #pools = new Map<string, SharedPool>();
  /** All that gives out here, also what the store need not count. */
  readonly #given = new Set<SharedPool>();
  #numbers = 0;
  /** Told when something may be had that could not be had before. */
  onChange: (() => void) | null = null;
  /** Told when the store has gone. */
  onLost: (() => void) | null = null;
  onWake: ((pool: string, inMs: number) => void) | null = null;

  constructor(
    protected readonly state: SharedState,
    protected readonly clock: Clock,
    /** Of its leases: no other part of this replica has any of that name. */
    private readonly letter: string,
  ) {
    state.join(this);
  }

  protected addPlace(place: SharedPlace): void {
    this.places.add(place);
    if (place.own !== null) this.#given.add(place.own);
    for (const pool of place.pools) {
      this.#pools.set(pool.name, pool);
      this.#given.add(pool);
    }
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

  /**
   * One round trip: the first of these that is free anywhere. `use` takes it in the same step in which it came, so that
   * no other answer comes between; what it does not take is given back.
   */
  protected async request(
    asked: readonly PlacedAsk[],
    waits: readonly WaitNote[],
    use: () => void,
  ): Promise<Asked> {
    if (!this.state.ok || asked.length === 0) return NOTHING;
    const id = this.newId();
    const sentAt = this.clock.now();
    let answer: ClaimAnswer;
    try {
      const asks = asked.map(({ ask }) => ask);
      answer = await this.state.store.claim(id, asks, waits);
    } catch (error) {
      ignoreUnavailable(error);
      return NOTHING;
    }
    const { granted, heldBackMs, lapseMs } = answer;
    const places = granted === null ? undefined : asked[granted]?.places;
    if (places === undefined) {
      const heldBack = heldBackMs > 0;
      return { got: 'nothing', againMs: heldBack ? heldBackMs : lapseMs, heldBack };
    }
    // Lost meanwhile: whatever is not told when it is back is struck out there.
    if (!this.state.ok) return NOTHING;
    for (const place of places) place.add({ id, renewedAt: sentAt });
    use();
    const [first] = places;
    const got = first !== undefined && first.surplus > 0 ? 'given back' : 'used';
    // The place of a trial may be left over alone: the rest had ended meanwhile.
    for (const place of places) if (place.surplus > 0) this.giveBack(place, 0);
    return { got, againMs: null };
  }

  /** Comes before it is free here: it may be somebody else's turn. */
  protected giveBack(place: SharedPlace, pauseMs: number): void {
    const permit = place.takeOut();
    if (permit !== null) this.#tellRelease(place, permit, pauseMs);
  }

  protected newId(): string {
    return `${this.state.store.replica}:${this.letter}${++this.#numbers}`;
  }

  // ---- the life of the store

  leases(): readonly PooledLease[] {
    return [...this.places].flatMap(({ permits, pools }) =>
      permits.map(({ id }) => ({ id, pools: pools.map((pool) => ({ pool, held: pool.inHand })) })),
    );
  }

  pools(): readonly Pool[] {
    return [...this.#pools.values()];
  }

  enrolling(): void {
    const now = this.clock.now();
    for (const { active, permits } of this.places) {
      permits.length = Math.min(permits.length, active);
      while (permits.length < active) permits.push({ id: this.newId(), renewedAt: now });
    }
    for (const pool of this.#given) pool.freeze();
  }

  joined({ excesses }: EnrolAnswer): void {
    for (const pool of this.#given) {
      pool.told();
      pool.forgetExcesses();
    }
    const now = this.clock.now();
    for (const place of this.places) {
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
    for (const place of this.places) {
      for (const permit of place.permits) permit.renewedAt = Math.max(permit.renewedAt, sentAt);
      const lapsed = place.permits.filter(({ id }) => gone.has(id)).length;
      if (lapsed > 0) this.lapsed(place, lapsed);
    }
  }

  /** So many permits of this place had lapsed before they were renewed: others may have used what they stand for. */
  protected lapsed(_place: SharedPlace, _count: number): void {}

  lost(): void {
    for (const pool of this.#given) {
      if (this.state.onError === 'local' && this.state.replicas > 0) pool.keep();
      else pool.shut();
    }
    this.onLost?.();
  }

  alone(): void {
    if (this.state.onError !== 'local' || this.state.replicas === 0) return;
    for (const pool of this.#given) pool.share(this.state.replicas);
    this.onChange?.();
  }

  happened(event: StoreEvent): void {
    if (event.kind === 'excess') this.#pools.get(event.pool)?.heard(event.replica, event.slots);
    else if (event.kind === 'gone') for (const pool of this.#pools.values()) pool.heard(event.replica, 0);
    else if (event.kind === 'wake') this.onWake?.(event.pool, event.inMs);
  }

  #tellRelease({ pools }: SharedPlace, { id }: Permit, pauseMs: number): void {
    const lease = { id, pools: pools.map((pool) => ({ pool, held: pool.inHand })) };
    // Where this is not heard the lease lapses.
    this.state.store.release(lease, pauseMs).catch(ignoreUnavailable);
  }
}
