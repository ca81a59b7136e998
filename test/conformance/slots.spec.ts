import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Claim, Claimable } from '../../src/upstreams/concurrency/claimable.js';
import type { Waiter } from '../../src/upstreams/concurrency/waiter.js';
import { describeWithRedis, RedisServer } from '../support/redis-server.js';
import { fileWith, type Got, ReplicaSlots } from '../support/replica-slots.js';
import { waitFor } from '../support/wait-for.js';

let redis: RedisServer;
let prefixes = 0;
const newPrefix = () => `c${++prefixes}:`;

/** As many replicas of one file as are asked for; in memory there is only one. */
type Replicas = (file: object, count: number) => Promise<readonly ReplicaSlots[]>;

const inMemory: Replicas = (file, count) => {
  const one = ReplicaSlots.inMemory(file);
  return Promise.resolve(Array.from({ length: count }, () => one));
};

const onRedis: Replicas = async (file, count) => {
  const prefix = newPrefix();
  const replicas = await Promise.all(
    Array.from({ length: count }, () => ReplicaSlots.onRedis(file, redis.url, prefix)),
  );
  onTestFinished(async () => {
    await Promise.all(replicas.map((replica) => replica.close()));
  });
  return replicas;
};

const idOf = (got: Got) => (got !== null && 'candidate' in got ? got.candidate.upstream.id : null);
const release = (got: Got) => {
  if (got === null || !('lease' in got)) throw new Error('nothing was claimed');
  got.lease.release();
};

/** What every store of slots promises; with `replicas` that are one or several processes. */
function slotContract(replicas: Replicas): void {
  it('gives the first free of a list, never above a limit, and again once it was given back', async () => {
    const [one, two] = (await replicas(fileWith({ a: { max_concurrency: 1 }, b: {} }), 2)) as [
      ReplicaSlots,
      ReplicaSlots,
    ];
    const first = await one.claim('a', 'b');
    expect(idOf(first)).toBe('a');
    expect(idOf(await two.claim('a', 'b'))).toBe('b');
    expect(await two.claim('a')).toBeNull();
    release(first);
    release(first);
    await waitFor(async () => idOf(await two.claim('a')) === 'a', 'it was free again');
    expect(await one.claim('a')).toBeNull();
  });

  it('gives exactly the limit to a crowd', async () => {
    const all = await replicas(fileWith({ a: { max_concurrency: 3 } }), 2);
    const crowd = Array.from({ length: 20 }, (_, i) => all[i % 2]!.claim('a'));
    const got = (await Promise.all(crowd)).filter((claim) => claim !== null);
    expect(got).toHaveLength(3);
  });

  it('counts a group beside the own limits', async () => {
    const file = fileWith(
      { a: { slot_group: 'g', max_concurrency: 2 }, b: { slot_group: 'g' }, c: {} },
      { g: { limit: 1 } },
    );
    const [one, two] = (await replicas(file, 2)) as [ReplicaSlots, ReplicaSlots];
    const held = await one.claim('a');
    expect(await two.claim('b')).toBeNull();
    expect(await two.claim('a')).toBeNull();
    expect(idOf(await two.claim('b', 'c'))).toBe('c');
    release(held);
    await waitFor(async () => idOf(await two.claim('b')) === 'b', 'the group was free again');
  });

  it('keeps a slot shut through the pause after an exchange', async () => {
    const file = fileWith({ a: { max_concurrency: 1, settle: 'PT1M' } });
    const [one, two] = (await replicas(file, 2)) as [ReplicaSlots, ReplicaSlots];
    release(await one.claim('a'));
    expect(await one.claim('a')).toBeNull();
    expect(await two.claim('a')).toBeNull();
  });

  it('passes by what rests, until a success', async () => {
    const file = fileWith({ a: { max_concurrency: 1, backoff: 'PT1H', probe_interval: 'PT0S' }, b: {} });
    const [one, two] = (await replicas(file, 2)) as [ReplicaSlots, ReplicaSlots];
    const now = performance.now();
    one.upstream('a').backoff?.failed(now, now, 3_000_000);
    await waitFor(() => two.upstream('a').restingMs(performance.now()) > 0, 'it rests for both');
    expect(idOf(await one.claim('a', 'b'))).toBe('b');
    expect(idOf(await two.claim('a', 'b'))).toBe('b');
    one.upstream('a').backoff?.succeeded();
    await waitFor(async () => idOf(await two.claim('a', 'b')) === 'a', 'it was back');
  });

  it('passes by what does not know its model, until it does', async () => {
    const [one, two] = (await replicas(fileWith({ a: {}, b: {} }), 2)) as [ReplicaSlots, ReplicaSlots];
    one.upstream('a').gone(performance.now(), 600_000);
    await waitFor(async () => idOf(await two.claim('a', 'b')) === 'b', 'both know');
    expect(two.upstream('a').restingMs(performance.now())).toBeGreaterThan(590_000);
    two.upstream('a').succeeded();
    await waitFor(async () => idOf(await one.claim('a', 'b')) === 'a', 'it was back');
  });

  it('hands a freed slot to who waits best, whoever holds it and wherever it waits', async () => {
    const file = fileWith({ a: { max_concurrency: 1 } });
    const [one, two] = (await replicas(file, 2)) as [ReplicaSlots, ReplicaSlots];
    const held = await one.claim('a');
    const served: string[] = [];
    const stand = async (replica: ReplicaSlots, name: string, priority: number) => {
      const got = await replica.wait(['a'], priority);
      served.push(name);
      release(got);
    };
    const low = stand(one, 'low', 0);
    await waitsNoted([one, two]);
    const high = stand(two, 'high', 5);
    await waitsNoted([one, two]);
    release(held);
    await Promise.all([low, high]);
    expect(served).toEqual(['high', 'low']);
    await waitFor(async () => idOf(await one.claim('a')) === 'a', 'nobody holds it any more');
  });

  it('…also where the best of a replica has left, or was served elsewhere', async () => {
    const file = fileWith({ a: { max_concurrency: 1 }, b: { max_concurrency: 1 } });
    const all = (await replicas(file, 2)) as [ReplicaSlots, ReplicaSlots];
    const [one, two] = all;
    const held = { a: await one.claim('a'), b: await one.claim('b') };
    const served: string[] = [];
    const stand = async (replica: ReplicaSlots, name: string, ids: readonly string[], priority: number) => {
      let waiter: Waiter | undefined;
      const got = replica
        .wait(ids, priority, (mine) => (waiter = mine))
        .then((result) => {
          served.push(`${name}=${idOf(result)}`);
          if (idOf(result) !== null) release(result);
        });
      await waitsNoted(all);
      return { got, leave: () => replica.service.leave(waiter as Waiter) };
    };
    await stand(one, 'elsewhere', ['a', 'b'], 9);
    const gone = await stand(one, 'gone', ['a'], 5);
    const low = await stand(one, 'low', ['a'], 0);
    const middle = await stand(two, 'middle', ['a'], 3);
    release(held.b);
    gone.leave();
    await waitsNoted(all);
    release(held.a);
    await Promise.all([middle.got, low.got]);
    expect(served.slice(-2)).toEqual(['middle=a', 'low=a']);
    expect(served.slice(0, 2).toSorted()).toEqual(['elsewhere=b', 'gone=null']);
  });

  describe.each([
    { limit: 'no limit', max_concurrency: null, places: 2 },
    { limit: 'a limit of 3', max_concurrency: 3, places: 1 },
  ])('of trials at an upstream with $limit', ({ max_concurrency, places }) => {
    const file = fileWith({
      a: {
        max_concurrency,
        backoff: { base: 'PT1H', cap: 'PT1H' },
        recovery: 'both',
        probe: { mode: 'get', path: '/health', wake: 'trial' },
      },
    });

    it('gives out as many as there are places, and each again once it was given back', async () => {
      const all = (await replicas(file, 2)) as [ReplicaSlots, ReplicaSlots];
      const [one, two] = all;
      await restsButMayBeTried(all);
      const crowd = Array.from({ length: 8 }, (_, i) => all[i % 2]!.claim('a'));
      const got = (await Promise.all(crowd)).filter((claim) => claim !== null);
      expect(got.map(({ lease }) => lease.trial)).toEqual(Array(places).fill(true));
      for (const claim of got) release(claim);
      let again: Got = null;
      await waitFor(async () => (again = await two.claim('a')) !== null, 'a place was free again');
      if (places === 1) expect(await one.claim('a')).toBeNull();
      one.upstream('a').backoff?.succeeded();
      await waitFor(() => two.upstream('a').restingMs(performance.now()) === 0, 'it was healthy');
      const healthy = await one.claim('a');
      expect(idOf(healthy)).toBe('a');
      release(healthy);
      release(again);
      await waitFor(
        () => all.every((replica) => replica.upstream('a').backoff?.trials === 0),
        'all were back',
      );
    });

    it('hands one on to who waits, wherever', async () => {
      const all = (await replicas(file, 2)) as [ReplicaSlots, ReplicaSlots];
      const [one, two] = all;
      await restsButMayBeTried(all);
      const held = [];
      for (let i = 0; i < places; i++) held.push(await one.claim('a'));
      const waiting = two.wait(['a']);
      await waitsNoted(all);
      release(held[0] as Got);
      const got = await waiting;
      expect(got).toMatchObject({ lease: { trial: true } });
      expect(await one.claim('a')).toBeNull();
    });
  });

  it('lets nobody overtake those who wait', async () => {
    const file = fileWith({ a: { max_concurrency: 1 } });
    const [one, two] = (await replicas(file, 2)) as [ReplicaSlots, ReplicaSlots];
    const held = await one.claim('a');
    const waiting = two.wait(['a']);
    await waitsNoted([one, two]);
    release(held);
    const newcomer = await one.claim('a');
    expect(newcomer).toBeNull();
    expect(idOf(await waiting)).toBe('a');
  });
}

/** It rests at all of them, and a probe has said that it may be tried. */
async function restsButMayBeTried(replicas: readonly ReplicaSlots[]): Promise<void> {
  const [first] = replicas;
  const now = performance.now();
  first?.upstream('a').backoff?.failed(now, now);
  for (const replica of replicas) {
    const { backoff, recovery } = replica.upstream('a');
    await waitFor(() => backoff?.restNumber === 1, 'it rests');
    recovery?.probed(true, 1);
  }
}

/** Whoever waits has been noted in the store: some questions to it later. */
async function waitsNoted(replicas: readonly ReplicaSlots[]): Promise<void> {
  for (let i = 0; i < 5; i++) for (const { store } of replicas) await store?.held(['x']);
}

describe('slots in memory', () => slotContract(inMemory));

describeWithRedis('slots on Redis', () => {
  beforeAll(async () => {
    redis = await RedisServer.start();
  });
  afterAll(() => redis.kill());

  slotContract(onRedis);

  it('follow a plain model, whatever two replicas claim and give back, and when one of them dies', async () => {
    const limits: Record<string, number> = { a: 1, b: 2, c: 3 };
    const step = fc.oneof(
      fc.record({ do: fc.constant('claim' as const), by: fc.nat(1), of: fc.shuffledSubarray(['a', 'b', 'c'], { minLength: 1 }) }),
      fc.record({ do: fc.constant('release' as const), by: fc.nat(1), which: fc.nat() }),
      fc.record({ do: fc.constant('die' as const), by: fc.nat(1) }),
    ); // prettier-ignore
    const file = fileWith(
      Object.fromEntries(Object.entries(limits).map(([id, limit]) => [id, { max_concurrency: limit }])),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const prefix = newPrefix();
        const start = () => ReplicaSlots.onRedis(file, redis.url, prefix);
        const replicas = [await start(), await start()];
        const held: Claim<Claimable>[][] = [[], []];
        const taken = (id: string) => held.flat().filter((claim) => idOf(claim) === id).length;
        for (const one of steps) {
          const replica = replicas[one.by] as ReplicaSlots;
          const own = held[one.by] as Claim<Claimable>[];
          if (one.do === 'claim') {
            const expected = one.of.find((id) => taken(id) < limits[id]!) ?? null;
            const got = await replica.claim(...one.of);
            expect(idOf(got)).toBe(expected);
            if (got !== null) own.push(got);
          } else if (one.do === 'release' && own.length > 0) {
            const [claim] = own.splice(one.which % own.length, 1);
            claim?.lease.release();
            // Both speak to the store in the order in which they are asked.
            await replica.store?.held(['x']);
          } else if (one.do === 'die') {
            // It says nothing; its leases lapse. Here they are made to.
            await replica.store?.close();
            await lapse(prefix, replica.store?.replica ?? '');
            held[one.by] = [];
            replicas[one.by] = await start();
          }
        }
        await Promise.all(replicas.map((replica) => replica.close()));
      }),
      { numRuns: 25 },
    );
  }, 60_000);
});

/** Time passes for the leases of one replica alone. */
async function lapse(prefix: string, replica: string): Promise<void> {
  const { createClient } = await import('@redis/client');
  const client = createClient({ url: redis.url });
  await client.connect();
  for (const key of (await client.sendCommand(['KEYS', `${prefix}pool:*`])) as unknown as string[]) {
    for (const member of (await client.sendCommand(['ZRANGE', key, '0', '-1'])) as unknown as string[])
      if (member.startsWith(`${replica}:`)) await client.sendCommand(['ZADD', key, '1', member]);
  }
  client.destroy();
}
