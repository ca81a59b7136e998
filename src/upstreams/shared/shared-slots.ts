import type { Clock } from '../../common/time/clock.js';
import { ignoreUnavailable, type SharedState } from '../../state/shared-state.js';
import type { ClaimAsk, WaitNote } from '../../state/shared-store.js';
import type { Pool, PooledLease } from '../../state/shared-types.js';
import type { Lease } from '../lease.js';
import type { Upstream } from '../upstream.js';
import { restNameOf } from './rest-name.js';
import type { SharedPlace } from './shared-place.js';
import { type Asked, SharedPlaces } from './shared-places.js';
import type { SharedPool } from './shared-pool.js';
import type { SlotKeeper } from './slot-keeper.js';
import type { Want } from './wants.js';

/** A lease that could not be renewed for that part of its time is as good as lost. */
const STRICT_PART = 0.8;

/**
 * The slots, and the places of trials, that this replica has of upstreams which all replicas use. `pick` and the dispatcher decide
 * who uses them, and see them as free slots. Lives as long as the service; owns the watch over leases that are not renewed.
 */
export class SharedSlots extends SharedPlaces implements SlotKeeper {
  readonly #slots = new Map<Upstream, SharedPlace>();
  /** Upstreams that share a counter share it. */
  readonly #trials = new Map<Upstream, SharedPlace>();
  /** What probes hold of groups. */
  readonly #probes = new Set<PooledLease>();
  #strictWatch: NodeJS.Timeout | null = null;

  constructor(state: SharedState, clock: Clock) {
    super(state, clock, '');
    if (state.onError !== 'strict') return;
    this.#strictWatch = setInterval(() => this.#revokeStale(), state.leaseMs / 15);
    this.#strictWatch.unref();
  }

  /** Called once for each upstream: `slots` of its own, null where it has no limit, its own or a group's; `trials` likewise. */
  add(upstream: Upstream, slots: SharedPlace | null, trials: SharedPlace | null): void {
    if (slots !== null) this.#slots.set(upstream, slots);
    if (trials !== null) this.#trials.set(upstream, trials);
    for (const place of [slots, trials]) {
      if (place === null) continue;
      this.addPlace(place);
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

  /** See {@link SharedPlaces.request}. */
  async ask(wanted: readonly Want[], waits: readonly WaitNote[], use: () => void): Promise<Asked> {
    const asked = wanted.flatMap((want) => {
      const places = this.#placesFor(want);
      return places.length === 0 ? [] : [{ places, ask: this.#askFor(want) }];
    });
    return await this.request(asked, waits, use);
  }

  took(lease: Lease): void {
    this.#slots.get(lease.upstream)?.leases.add(lease);
  }

  givesBack(lease: Lease): void {
    const { upstream } = lease;
    const place = this.#slots.get(upstream);
    place?.leases.delete(lease);
    // Without a store a slot stays with who holds it, for the next.
    if (!this.state.ok) return;
    if (place !== undefined) this.giveBack(place, upstream.config.settleMs);
    const trials = lease.trial ? this.#trials.get(upstream) : undefined;
    if (trials !== undefined) this.giveBack(trials, 0);
  }

  /** The slot of a group for a background probe, while nothing runs there at any replica. Null: not now. */
  async holdForProbe(pool: SharedPool, pauseMs: number): Promise<(() => void) | null> {
    const id = this.newId();
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

  override leases(): readonly PooledLease[] {
    return [...super.leases(), ...this.#probes];
  }

  protected override lapsed(place: SharedPlace, count: number): void {
    if (this.state.onError === 'strict') this.#revoke(place, count);
  }

  /** What a request asks for: slots of the upstream and its group, and the place of a trial where it is one. */
  #placesFor({ trial, upstream }: Want): SharedPlace[] {
    const slots = this.#slots.get(upstream);
    const trials = trial ? this.#trials.get(upstream) : undefined;
    return [slots, trials].filter((place) => place !== undefined);
  }

  #askFor({ trial, upstream }: Want): ClaimAsk {
    const pools = (this.#slots.get(upstream)?.pools ?? []).map((pool) => ({ pool, held: pool.inHand }));
    if (!trial) return { pools, rest: restNameOf(upstream.config) };
    const limit = upstream.recovery?.places ?? 0;
    const trials = this.#trials.get(upstream)?.pools ?? [];
    const places = trials.map(({ inHand, name }) => ({ pool: { name, limit }, held: inHand }));
    return { pools: [...pools, ...places], rest: null };
  }

  #revokeStale(): void {
    const before = this.clock.now() - this.state.leaseMs * STRICT_PART;
    for (const place of this.places) {
      const stale = place.permits.filter(({ renewedAt }) => renewedAt < before).length;
      this.#revoke(place, stale);
    }
  }

  #revoke({ leases }: SharedPlace, count: number): void {
    for (const lease of [...leases].slice(0, count)) lease.revoke();
  }
}
