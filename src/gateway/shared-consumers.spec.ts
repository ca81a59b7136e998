import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { describeWithRedis, RedisServer } from '../../test/support/redis-server.js';
import { waitFor } from '../../test/support/wait-for.js';
import { monotonicClock } from '../common/time/clock.js';
import { ConsumerSlots } from '../consumers/caller.js';
import { RedisStore } from '../state/redis/redis-store.js';
import { type OnError, SharedState } from '../state/shared-state.js';
import { SharedConsumers } from './shared-consumers.js';

let redis: RedisServer;
let prefixes = 0;
const newPrefix = () => `sc${++prefixes}:`;

/** The places of one consumer as one replica sees them. */
class Replica {
  readonly slots: ConsumerSlots;
  readonly store: RedisStore;
  readonly state: SharedState;
  readonly shared: SharedConsumers;

  constructor(limit: number, prefix: string, url = redis.url, onError: OnError = 'local') {
    this.slots = new ConsumerSlots(limit);
    this.store = new RedisStore({ url, prefix, timeoutMs: 2000, leaseMs: 15_000, newcomerMs: 0 });
    const log = { lost: () => {}, back: () => {} };
    this.state = new SharedState({
      store: this.store, clock: monotonicClock, onError, leaseMs: 15_000, timeoutMs: 50, patienceMs: 5000, log,
    }); // prettier-ignore
    this.shared = new SharedConsumers(this.state, monotonicClock, new Map([['red', this.slots]]));
  }

  static async several(count: number, limit: number, url?: string, onError?: OnError): Promise<Replica[]> {
    const prefix = newPrefix();
    const replicas = Array.from({ length: count }, () => new Replica(limit, prefix, url, onError));
    await Promise.all(replicas.map(({ state }) => state.open()));
    await waitFor(
      async () => (await Promise.all(replicas.map(({ store }) => store.renew([])))).every(({ replicas: known }) => known === count),
      'all know of each other',
    ); // prettier-ignore
    return replicas;
  }

  /** As a newcomer asks. */
  async take(): Promise<boolean> {
    return this.shared.asks(this.slots) ? await this.shared.take(this.slots) : this.slots.take();
  }

  giveBack(): void {
    this.shared.givesBack(this.slots);
    this.slots.giveBack();
  }

  wait(priority: number, got: () => void, givenUp = () => {}): void {
    this.slots.wait({ priority, since: performance.now(), handOver: got, giveUp: givenUp });
    this.shared.changed(this.slots);
  }

  /** What was told to the store before has been heard there. */
  async heard(): Promise<void> {
    await this.store.held(['x']);
  }
}

async function several(count: number, limit: number): Promise<Replica[]> {
  const replicas = await Replica.several(count, limit);
  onTestFinished(async () => {
    await Promise.all(replicas.map(({ state }) => state.close()));
  });
  return replicas;
}

describeWithRedis('places of a consumer that replicas share', () => {
  beforeAll(async () => {
    redis = await RedisServer.start();
  });
  afterAll(() => redis.kill());

  it('are its limit together, whatever is taken and given back', async () => {
    const step = fc.record({ by: fc.nat(2), take: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 40 }), async (limit, steps) => {
        const replicas = await Replica.several(3, limit);
        let taken = 0;
        for (const { by, take } of steps) {
          const replica = replicas[by] as Replica;
          if (take) {
            expect(await replica.take()).toBe(taken < limit);
            taken = Math.min(limit, taken + 1);
          } else if (replica.slots.active > 0) {
            replica.giveBack();
            await replica.heard();
            taken--;
          }
          expect(replicas.reduce((sum, { slots }) => sum + slots.active, 0)).toBe(taken);
        }
        await Promise.all(replicas.map(({ state }) => state.close()));
      }),
      { numRuns: 20 },
    ); // prettier-ignore
  }, 60_000);

  it('never come to more in a crowd', async () => {
    const replicas = await several(3, 2);
    const got = await Promise.all(Array.from({ length: 30 }, (_, i) => replicas[i % 3]!.take()));
    expect(got.filter(Boolean)).toHaveLength(2);
  });

  it('go to whoever waits with the highest priority, wherever, and no newcomer comes between', async () => {
    const [one, two] = (await several(2, 1)) as [Replica, Replica];
    expect(await one.take()).toBe(true);
    const served: string[] = [];
    one.wait(0, () => served.push('low'));
    await one.heard();
    two.wait(5, () => served.push('high'));
    for (let i = 0; i < 3; i++) for (const replica of [one, two]) await replica.heard();
    one.giveBack();
    expect(await one.take()).toBe(false);
    await waitFor(() => served.length === 1, 'one was served');
    expect(served).toEqual(['high']);
    two.giveBack();
    await waitFor(() => served.length === 2, 'the other one was served');
    one.giveBack();
    await waitFor(async () => await two.take(), 'it is free again');
  });

  describe('without a store', () => {
    const alone = async (limit: number, onError: OnError = 'local') => {
      const server = await RedisServer.start();
      const replicas = await Replica.several(2, limit, server.url, onError);
      onTestFinished(async () => {
        await Promise.all(replicas.map(({ state }) => state.close()));
        await server.kill();
      });
      return { replicas: replicas as [Replica, Replica], server };
    };

    it('are the even share of each replica, and one at least, and whoever waits gets it', async () => {
      const { replicas, server } = await alone(1);
      const [one, two] = replicas;
      expect(await one.take()).toBe(true);
      let got = false;
      two.wait(0, () => (got = true));
      await server.kill();
      await waitFor(() => got, 'the one who waited was served');
      expect([await one.take(), await two.take()]).toEqual([false, false]);
      await server.up();
      await waitFor(() => replicas.every(({ state }) => state.ok), 'both are back');
      expect([await one.take(), await two.take()]).toEqual([false, false]);
      for (const replica of replicas) replica.giveBack();
      // An empty store gives nothing out for the time of a lease: the share holds on.
      await waitFor(() => one.take(), 'a place');
      expect(await one.take()).toBe(false);
    });

    it('reject: who waits is told so', async () => {
      const { replicas, server } = await alone(1, 'reject');
      const [one, two] = replicas;
      expect(await one.take()).toBe(true);
      let told = false;
      two.wait(0, () => {}, () => (told = true)); // prettier-ignore
      await server.kill();
      // Each replica notices by itself.
      await waitFor(() => told && one.shared.rejecting, 'both noticed');
      expect(two.slots.first).toBeNull();
    });

    it('strict: nothing is given out', async () => {
      const { replicas, server } = await alone(4, 'strict');
      await server.kill();
      await waitFor(() => replicas.every(({ state }) => !state.ok), 'both noticed');
      expect(await replicas[0].take()).toBe(false);
    });
  });
});
