import type { Clock } from '../common/time/clock.js';
import type { ConsumerSlots } from '../consumers/caller.js';
import type { SharedState } from '../state/shared-state.js';
import type { WaitNote } from '../state/shared-store.js';
import { setNodeAlarm } from '../upstreams/concurrency/alarm.js';
import { Pursuit } from '../upstreams/shared/pursuit.js';
import { SharedPlace } from '../upstreams/shared/shared-place.js';
import { type Asked, SharedPlaces } from '../upstreams/shared/shared-places.js';
import { SharedPool } from '../upstreams/shared/shared-pool.js';

/** Injection token of the {@link SharedConsumers}; null where this process shares nothing. */
export const SHARED_CONSUMERS = Symbol.for('llm-proxy:shared-consumers');

/** What this replica has of the places of one consumer. */
interface Shared {
  readonly pool: SharedPool;
  readonly place: SharedPlace;
  readonly pursuit: ConsumerPursuit;
}

/** No consumer is locked out for want of a store. */
const LEAST_ALONE = 1;

/**
 * The requests that consumers may have at once, where replicas share these limits: a place is asked for in the store, and given
 * back there. Who of those that wait here is next is for {@link ConsumerSlots} to say. Without a store, and while it gives nothing
 * out, each replica has its even share, and one place at least: no hardware is behind these limits. Lives as long as the service.
 */
export class SharedConsumers extends SharedPlaces {
  readonly #shared = new Map<ConsumerSlots, Shared>();

  constructor(state: SharedState, clock: Clock, limited: ReadonlyMap<string, ConsumerSlots>) {
    super(state, clock, 'c');
    const least = state.onError === 'local' ? LEAST_ALONE : 0;
    const byPool = new Map<string, ConsumerPursuit>();
    for (const [id, slots] of limited) {
      const pool = new SharedPool(`c:${id}`, slots, slots.limit, least);
      const place = new SharedPlace(slots, [pool]);
      const pursuit = new ConsumerPursuit(slots, pool, this, clock);
      this.addPlace(place);
      this.#shared.set(slots, { pool, place, pursuit });
      byPool.set(pool.name, pursuit);
      // Until the store is met.
      pool.share(Infinity);
    }
    // Named first: a closure that is put on an object at once costs the collector dearly.
    const serve = () => {
      for (const slots of this.#shared.keys()) this.changed(slots);
    };
    const lost = () => {
      if (this.rejecting) for (const slots of this.#shared.keys()) slots.sendBack();
    };
    const woken = (pool: string, inMs: number) => byPool.get(pool)?.woken(inMs);
    this.onChange = serve;
    this.onLost = lost;
    this.onWake = woken;
  }

  /** Whether places of this consumer come from the store at this moment. */
  asks(slots: ConsumerSlots): boolean {
    return this.state.ok && this.#shared.has(slots);
  }

  /** A place for a newcomer, behind all that wait here. Never rejects. */
  async take(slots: ConsumerSlots): Promise<boolean> {
    if (slots.first !== null) return false;
    let taken = false;
    const use = () => {
      slots.serve();
      taken = slots.take();
    };
    await this.askFor(slots, [], use);
    // The store has gone meanwhile: then what this replica has decides.
    return taken || (!this.state.ok && slots.take());
  }

  /** Comes before the place is free here. */
  givesBack(slots: ConsumerSlots): void {
    const shared = this.#shared.get(slots);
    // Without a store a place stays with who holds it, for the next.
    if (shared !== undefined && this.state.ok) this.giveBack(shared.place, 0);
  }

  /** Somebody waits here or has left, or more may be free. */
  changed(slots: ConsumerSlots): void {
    slots.serve();
    this.#shared.get(slots)?.pursuit.pursue();
  }

  /** See {@link SharedPlaces.request}. */
  async askFor(slots: ConsumerSlots, waits: readonly WaitNote[], use: () => void): Promise<Asked> {
    const shared = this.#shared.get(slots);
    if (shared === undefined) return { got: 'nothing', againMs: null };
    const { place, pool } = shared;
    const ask = { pools: [{ pool, held: pool.inHand }], rest: null };
    const asked = await this.request([{ places: [place], ask }], waits, use);
    const alone = asked.heldBack === true && this.state.onError === 'local' && this.state.ok;
    if (!alone || slots.active >= pool.shareOf(this.state.replicas)) return asked;
    // Told to the store with the next renewal, which takes it as it is.
    place.add({ id: this.newId(), renewedAt: this.clock.now() });
    use();
    if (place.surplus > 0) this.giveBack(place, 0);
    return { got: 'used', againMs: null };
  }
}

/** Places for those who wait for one of their consumer. */
class ConsumerPursuit extends Pursuit {
  constructor(
    private readonly slots: ConsumerSlots,
    private readonly pool: SharedPool,
    private readonly shared: SharedConsumers,
    private readonly time: Clock,
  ) {
    super(time, setNodeAlarm);
  }

  protected get waiting(): boolean {
    return this.slots.first !== null;
  }

  protected ask(): Promise<Asked> | null {
    const { first } = this.slots;
    if (first === null) return null;
    const { priority, since } = first;
    const note = { pool: this.pool.name, priority, waitedMs: this.time.now() - since };
    return this.shared.askFor(this.slots, [note], () => this.slots.serve());
  }

  protected forget(): void {
    this.shared.forget([this.pool]);
  }
}
