import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { configOf, slotsOf } from '../../../test/support/slot-rooms.js';
import { SharedState } from '../../state/shared-state.js';
import type {
  ClaimAnswer,
  ClaimAsk,
  SharedStore,
  StoreListener,
  WaitNote,
} from '../../state/shared-store.js';
import type { PooledLease } from '../../state/shared-types.js';
import type { Claim, Claimable } from '../concurrency/claimable.js';
import type { Waiter } from '../concurrency/waiter.js';
import type { Upstream } from '../upstream.js';
import { SharedClaims } from './shared-claims.js';
import { SharedSlots } from './shared-slots.js';

/** Upstreams with and without a limit of their own, alone and in groups. */
const CONFIG = configOf({
  slot_groups: { one: 1, two: 2 },
  providers: [{ id: 'p', url: 'http://127.0.0.1:9/v1' }],
  upstreams: [
    { id: 'a', provider: 'p', model: 'a', slot_group: 'one' },
    { id: 'b', provider: 'p', model: 'b', slot_group: 'one' },
    { id: 'c', provider: 'p', model: 'c', slot_group: 'two', max_concurrency: 1 },
    { id: 'd', provider: 'p', model: 'd', slot_group: 'two' },
    { id: 'e', provider: 'p', model: 'e', max_concurrency: 2 },
  ],
  models: [['a'], ['b'], ['a', 'b'], ['c'], ['d'], ['c', 'd'], ['e']].map((upstreams) => ({
    name: upstreams.join('-'),
    upstreams,
    queue: { size: 1000, wait: 'PT1H' },
  })),
});
const LIMITS: Readonly<Record<string, number>> = { 'g:one': 1, 'g:two': 2, 'u:c': 1, 'u:e': 2 };
const POOLS: Readonly<Record<string, readonly string[]>> = {
  a: ['g:one'],
  b: ['g:one'],
  c: ['u:c', 'g:two'],
  d: ['g:two'],
  e: ['u:e'],
};

/** A store that answers when it is told to, whatever happens meanwhile. */
class SlowStore {
  readonly leases = new Map<string, readonly string[]>();
  readonly listeners: StoreListener[] = [];
  /** What is on its way, in the order in which it was sent. */
  readonly onTheWay: (() => void)[] = [];

  held(pool: string): number {
    return [...this.leases.values()].filter((pools) => pools.includes(pool)).length;
  }

  /** As one replica sees it. */
  of(replica: string): SharedStore {
    const claim = (lease: string, asks: readonly ClaimAsk[], _waits: readonly WaitNote[]) =>
      new Promise<ClaimAnswer>((resolve) => {
        this.onTheWay.push(() => {
          const granted = asks.findIndex(({ pools }) =>
            pools.every(({ pool }) => this.held(pool.name) < pool.limit),
          );
          const pools = asks[granted]?.pools;
          if (pools !== undefined) this.leases.set(lease, pools.map(({ pool }) => pool.name)); // prettier-ignore
          resolve({ granted: pools === undefined ? null : granted, lapseMs: null, heldBackMs: 0 });
        });
      });
    const release = async ({ id, pools }: PooledLease) => {
      this.leases.delete(id);
      for (const { pool } of pools)
        for (const listener of this.listeners)
          this.onTheWay.push(() => listener.happened({ kind: 'wake', pool: pool.name, inMs: 0 }));
    };
    const used = {
      replica,
      connected: true,
      open: (listener: StoreListener) => {
        this.listeners.push(listener);
        listener.connected();
      },
      close: async () => {},
      leave: async () => {},
      enrol: async () => ({ heldBackMs: 0, replicas: 2, excesses: [] }),
      renew: async () => ({ replicas: 2, heldBackMs: 0, lost: [] }),
      forget: async () => {},
      claim,
      release,
    };
    return used as unknown as SharedStore;
  }
}

const clock = { now: () => 0 };

class Replica {
  readonly #parts = slotsOf(CONFIG, clock);
  readonly #state: SharedState;
  readonly #claims: SharedClaims;
  readonly waiting: Waiter[] = [];
  readonly running: Claim<Claimable>[] = [];

  constructor(store: SharedStore) {
    const log = { lost: () => {}, back: () => {} };
    this.#state = new SharedState({
      store, clock, onError: 'local', leaseMs: 15_000, timeoutMs: 50, patienceMs: 50, log,
    }); // prettier-ignore
    const { registry, rooms } = this.#parts;
    this.#claims = new SharedClaims(new SharedSlots(this.#state, clock), rooms, registry.all, clock);
  }

  async open(): Promise<void> {
    await this.#state.open();
  }

  async close(): Promise<void> {
    this.#parts.service.close();
    await this.#state.close();
  }

  active(pool: string): number {
    return this.running.filter(({ candidate }) => POOLS[candidate.upstream.id]?.includes(pool)).length;
  }

  ask(model: number): void {
    void this.#serve(model);
  }

  async #serve(index: number): Promise<void> {
    const { registry, service } = this.#parts;
    const model = CONFIG.models[index % CONFIG.models.length] as (typeof CONFIG.models)[number];
    const entry = { tier: 1, spill: null };
    const upstreams = [...registry.all].filter(({ config }) => model.upstreams.includes(config));
    const candidates = upstreams.map((upstream: Upstream): Claimable => ({ upstream, gates: null, entry }));
    const waiter = service.waiterFor(model, { bytes: 1, consumer: '', priority: 0 }) as Waiter;
    const claim = await this.#claims.claim(candidates, null, waiter);
    if (claim !== null) {
      this.running.push(claim);
      return;
    }
    this.waiting.push(waiter);
    const result = await service.wait(candidates, null, waiter, Infinity)?.result;
    this.waiting.splice(this.waiting.indexOf(waiter), 1);
    if (result !== undefined && !('unserved' in result)) this.running.push(result);
  }

  leave(index: number): void {
    const waiter = this.waiting[index % Math.max(1, this.waiting.length)];
    if (waiter !== undefined) this.#parts.service.leave(waiter);
  }

  end(index: number): void {
    const [claim] = this.running.splice(index % Math.max(1, this.running.length), 1);
    claim?.lease.release();
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

const step = fc.record({
  what: fc.constantFrom('ask', 'ask', 'ask', 'leave', 'end', 'arrive', 'arrive', 'arrive'),
  by: fc.nat(1),
  which: fc.nat(20),
});

describe('claims over replicas', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('never run more than a limit allows, each on a lease of its own, whoever comes and leaves meanwhile', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80, size: 'max' }), async (steps) => {
        const store = new SlowStore();
        const replicas = [new Replica(store.of('r1')), new Replica(store.of('r2'))];
        for (const replica of replicas) await replica.open();
        const arrive = () => store.onTheWay.shift()?.();
        const check = () => {
          for (const [pool, limit] of Object.entries(LIMITS)) {
            const active = replicas.reduce((sum, replica) => sum + replica.active(pool), 0);
            expect(active).toBeLessThanOrEqual(limit);
            expect(store.held(pool)).toBeGreaterThanOrEqual(active);
          }
        };
        for (const { what, by, which } of steps) {
          const replica = replicas[by] as Replica;
          if (what === 'ask') replica.ask(which);
          else if (what === 'leave') replica.leave(which);
          else if (what === 'end') replica.end(which);
          else arrive();
          await settled();
          check();
        }
        // Whoever still waits is served in the end, and nothing is left over.
        for (let round = 0; round < 2000; round++) {
          while (store.onTheWay.length > 0) {
            arrive();
            await settled();
            check();
          }
          if (replicas.every(({ running, waiting }) => running.length + waiting.length === 0)) break;
          for (const replica of replicas) replica.end(0);
          vi.advanceTimersByTime(1000);
          await settled();
        }
        expect(replicas.map(({ waiting }) => waiting.length)).toEqual([0, 0]);
        expect(store.leases.size).toBe(0);
        for (const replica of replicas) await replica.close();
      }),
      { numRuns: 200 },
    );
  });
});
