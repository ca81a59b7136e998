import { monotonicClock } from '../../src/common/time/clock.js';
import { RedisStore } from '../../src/state/redis/redis-store.js';
import { SharedState } from '../../src/state/shared-state.js';
import type { Claim, Claimable } from '../../src/upstreams/concurrency/claimable.js';
import type { ConcurrencyService } from '../../src/upstreams/concurrency/concurrency.service.js';
import type { Unserved, Waiter } from '../../src/upstreams/concurrency/waiter.js';
import { SharedClaims } from '../../src/upstreams/shared/shared-claims.js';
import { SharedRests } from '../../src/upstreams/shared/shared-rests.js';
import { SharedSlots } from '../../src/upstreams/shared/shared-slots.js';
import type { Upstream } from '../../src/upstreams/upstream.js';
import { configOf, slotsOf } from './slot-rooms.js';

/** What came of a claim. */
export type Got = Claim<Claimable> | Unserved | null;

/** The slots of one process with nothing around them, as requests for the model `m` or `q` (with a queue) claim them. */
export class ReplicaSlots {
  readonly #upstreams: ReadonlyMap<string, Upstream>;
  readonly service: ConcurrencyService;
  readonly #models;
  #state: SharedState | null = null;
  #slots: SharedSlots | null = null;
  store: RedisStore | null = null;

  private constructor(private readonly file: object) {
    const config = configOf(file);
    const { registry, rooms, service } = slotsOf(config, monotonicClock);
    this.service = service;
    this.#models = config.models;
    this.#upstreams = new Map([...registry.all].map((upstream) => [upstream.id, upstream]));
    this.rooms = rooms;
  }

  private readonly rooms;

  static inMemory(file: object): ReplicaSlots {
    return new ReplicaSlots(file);
  }

  static async onRedis(file: object, url: string, prefix: string, leaseMs = 15_000): Promise<ReplicaSlots> {
    const replica = new ReplicaSlots(file);
    const store = new RedisStore({ url, prefix, timeoutMs: 2000, leaseMs, newcomerMs: 0 });
    const log = { lost: () => {}, back: () => {} };
    const state = new SharedState({
      store, clock: monotonicClock, onError: 'local', leaseMs, timeoutMs: 250, patienceMs: 5000, log,
    }); // prettier-ignore
    const all = [...replica.#upstreams.values()];
    const slots = new SharedSlots(state, monotonicClock);
    replica.service.share(new SharedClaims(slots, replica.rooms, all, monotonicClock));
    state.join(new SharedRests(state, all, monotonicClock));
    replica.#state = state;
    replica.#slots = slots;
    replica.store = store;
    await state.open();
    return replica;
  }

  /** Whether the store decides at this moment. */
  get shares(): boolean {
    return this.#state?.ok === true;
  }

  upstream(id: string): Upstream {
    return this.#upstreams.get(id) as Upstream;
  }

  /** At once, or not at all. */
  async claim(...ids: readonly string[]): Promise<Claim<Claimable> | null> {
    const { service } = this;
    return await (service.shared ?? service).claim(this.#candidates(ids), null, null);
  }

  /** In the queue of `q`, where it must be. `waits` is told who waits, for who may leave. */
  async wait(ids: readonly string[], priority = 0, waits: (waiter: Waiter) => void = () => {}): Promise<Got> {
    const { service } = this;
    const model = this.#models.find(({ name }) => name === 'q')!;
    const waiter = service.waiterFor(model, { consumer: '', priority, bytes: 1 });
    if (waiter !== null) waits(waiter);
    const candidates = this.#candidates(ids);
    const claim = await (service.shared ?? service).claim(candidates, null, waiter);
    if (claim !== null) return claim;
    const waiting = service.wait(candidates, null, waiter, Infinity);
    return waiting === null ? null : await waiting.result;
  }

  /** Its requests are gone, and nobody is told. */
  async crash(): Promise<void> {
    await this.store?.close();
    this.service.close();
    await this.close();
  }

  /** Whether it and the store are of one mind. */
  get joined(): boolean {
    return this.#state?.ok !== false;
  }

  async close(): Promise<void> {
    this.#slots?.close();
    await this.#state?.close();
  }

  #candidates(ids: readonly string[]): Claimable[] {
    return ids.map((id) => ({
      upstream: this.upstream(id),
      gates: null,
      entry: { tier: 1, spill: null },
    }));
  }
}

/** A file with these upstreams, and a model with a queue. */
export function fileWith(upstreams: Readonly<Record<string, object>>, groups: object = {}): object {
  const ids = Object.keys(upstreams);
  return {
    providers: [{ id: 'p', url: 'http://127.0.0.1:9/v1' }],
    upstreams: Object.entries(upstreams).map(([id, more]) => ({ id, provider: 'p', model: 'r', ...more })),
    slot_groups: groups,
    models: [
      { name: 'm', upstreams: ids },
      { name: 'q', upstreams: ids, queue: { size: 100, wait: 'PT1M' } },
    ],
  };
}
