import { createClient } from '@redis/client';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { describeWithRedis, RedisServer } from '../../../test/support/redis-server.js';
import { waitFor } from '../../../test/support/wait-for.js';
import type { ClaimAsk } from '../shared-store.js';
import type { Pool, StoreEvent } from '../shared-types.js';
import { RedisStore } from './redis-store.js';

let server: RedisServer;
let tests = 0;

/** One replica as its process sees the store. */
class Replica {
  readonly events: StoreEvent[] = [];
  readonly losses: string[] = [];
  readonly store: RedisStore;
  connections = 0;
  #leases = 0;

  constructor(prefix: string, leaseMs = 15_000, url = server.url) {
    this.store = new RedisStore({ url, prefix, timeoutMs: 1000, leaseMs, newcomerMs: 0 });
    this.store.open({
      connected: () => this.connections++,
      lost: (reason) => this.losses.push(reason),
      happened: (event) => this.events.push(event),
    });
    onTestFinished(() => this.store.close());
  }

  static async enrolled(prefix: string, leaseMs?: number): Promise<Replica> {
    const replica = new Replica(prefix, leaseMs);
    await waitFor(() => replica.store.connected, 'it was connected');
    await replica.store.enrol([], []);
    return replica;
  }

  id(): string {
    return `${this.store.replica}:${++this.#leases}`;
  }

  /** Id of the lease and number of the pool that was granted, or null. */
  async claim(pools: readonly Pool[], waits: { priority?: number; waitedMs?: number } | null = null) {
    const lease = this.id();
    const notes =
      waits === null
        ? []
        : pools.map(({ name }) => ({
            pool: name,
            priority: waits.priority ?? 0,
            waitedMs: waits.waitedMs ?? 0,
          }));
    const { granted } = await this.store.claim(lease, pools.map(ask), notes);
    return granted === null ? null : { lease, granted, pool: pools[granted] as Pool };
  }

  release({ lease, pool }: { lease: string; pool: Pool }, pauseMs = 0): Promise<void> {
    return this.store.release({ id: lease, pools: [{ pool, held: 0 }] }, pauseMs);
  }
}

const ask = (pool: Pool): ClaimAsk => ({ pools: [{ pool, held: 0 }], rest: null });
const A: Pool = { name: 'a', limit: 1 };
const B: Pool = { name: 'b', limit: 1 };
const BOUNDS = { keptMs: 60_000, histories: 3, prefixesPerHistory: 4 };
const newPrefix = () => `t${++tests}:`;

const raw = (...args: string[]) => server.command(...args);

describeWithRedis('the scripts', () => {
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.kill());

  it('give the first free of a list, and never more than the limit, to whomever', async () => {
    const prefix = newPrefix();
    const [one, two] = await Promise.all([Replica.enrolled(prefix), Replica.enrolled(prefix)]);
    expect((await one.claim([A, B]))?.granted).toBe(0);
    expect((await two.claim([A, B]))?.granted).toBe(1);
    expect(await one.claim([A, B])).toBeNull();
    expect(await two.claim([A])).toBeNull();
  });

  it('count one lease in several pools, or in none of them', async () => {
    const replica = await Replica.enrolled(newPrefix());
    const group: Pool = { name: 'g', limit: 1 };
    const both = (pool: Pool): ClaimAsk => ({
      pools: [
        { pool, held: 0 },
        { pool: group, held: 0 },
      ],
      rest: null,
    });
    const first = replica.id();
    expect((await replica.store.claim(first, [both(A)], [])).granted).toBe(0);
    expect((await replica.store.claim(replica.id(), [both(B)], [])).granted).toBeNull();
    expect(await replica.claim([B])).not.toBeNull();
    await replica.store.release({ id: first, pools: both(A).pools }, 0);
    expect((await replica.store.claim(replica.id(), [both(A)], [])).granted).toBe(0);
  });

  it('skip what rests, and say how long', async () => {
    const prefix = newPrefix();
    const [one, two] = await Promise.all([Replica.enrolled(prefix), Replica.enrolled(prefix)]);
    const booking = { name: 'u:a', baseMs: 60_000, capMs: 600_000, askedMs: 0, ageMs: 0, trial: false };
    expect(await one.store.failed(booking)).toMatchObject({ streak: 1, totalMs: 60_000, number: 1 });
    const asked: ClaimAsk[] = [{ pools: [{ pool: A, held: 0 }], rest: 'u:a' }, ask(B)];
    expect((await two.store.claim(two.id(), asked, [])).granted).toBe(1);
    await waitFor(() => two.events.some(({ kind }) => kind === 'rest'), 'the other heard of it');
    expect((await two.store.rests(['u:a', 'u:b'])).map(({ streak }) => streak)).toEqual([1, 0]);
    await two.store.succeeded('u:a');
    expect((await two.store.claim(two.id(), asked, [])).granted).toBe(0);
    await waitFor(
      () => one.events.some((event) => event.kind === 'rest' && event.state.streak === 0),
      'the first heard of the success',
    );
  });

  it('climb the ladder as one process does', async () => {
    const { store } = await Replica.enrolled(newPrefix());
    const booking = { name: 'u', baseMs: 100_000, capMs: 300_000, askedMs: 0, ageMs: 0, trial: false };
    const first = await store.failed(booking);
    // Began before the rest: the same event.
    const same = await store.failed({ ...booking, ageMs: 50_000, askedMs: 200_000 });
    expect([first.streak, same.streak, same.number]).toEqual([1, 1, 1]);
    expect(same.leftMs).toBeGreaterThan(199_000);
    expect(same.quietMs).toBe(200_000);
    const second = await store.failed({ ...booking, trial: true });
    // The window of a failed trial is never shorter than the one before it.
    expect(second).toMatchObject({ streak: 2, totalMs: same.totalMs, afterTrial: true });
    const third = await store.failed(booking);
    expect(third).toMatchObject({ streak: 3, totalMs: 300_000, afterTrial: false });
  });

  it('keep a freed place for the one who waits best, and wake it', async () => {
    const prefix = newPrefix();
    const [holder, early, urgent] = await Promise.all([
      Replica.enrolled(prefix),
      Replica.enrolled(prefix),
      Replica.enrolled(prefix),
    ]);
    const held = await holder.claim([A]);
    expect(await early.claim([A], { waitedMs: 60_000 })).toBeNull();
    expect(await urgent.claim([A], { priority: 5 })).toBeNull();
    await holder.release(held!);
    await waitFor(() => urgent.events.some(({ kind }) => kind === 'wake'), 'the urgent one was woken');
    expect(await holder.claim([A])).toBeNull();
    expect(await early.claim([A], { waitedMs: 60_000 })).toBeNull();
    const next = await urgent.claim([A]);
    expect(next).not.toBeNull();
    await urgent.release(next!);
    await waitFor(() => early.events.some(({ kind }) => kind === 'wake'), 'then the other');
    expect(early.events).toContainEqual({ kind: 'wake', pool: 'a', inMs: 0 });
  });

  it('hand a place on that nobody needs any more, and lose none to a replica that is gone', async () => {
    const prefix = newPrefix();
    const [holder, first, second] = await Promise.all([
      Replica.enrolled(prefix),
      Replica.enrolled(prefix),
      Replica.enrolled(prefix),
    ]);
    const gone = await Replica.enrolled(prefix);
    const held = await holder.claim([A]);
    await gone.claim([A], { priority: 9 });
    await gone.store.close();
    await first.claim([A], { priority: 5 });
    await second.claim([A], {});
    await waitFor(async () => {
      const reply = await raw('PUBSUB', 'NUMSUB', `${prefix}events:${gone.store.replica}`);
      return Number((reply as unknown[])[1]) === 0;
    }, 'the closed one was seen to be gone');
    await holder.release(held!);
    await waitFor(() => first.events.some(({ kind }) => kind === 'wake'), 'the best of the living was woken');
    await first.store.forget([A]);
    await waitFor(() => second.events.some(({ kind }) => kind === 'wake'), 'the next was woken');
    expect(await second.claim([A])).not.toBeNull();
  });

  it('keep a place shut through its pause', async () => {
    const prefix = newPrefix();
    const [one, two] = await Promise.all([Replica.enrolled(prefix), Replica.enrolled(prefix)]);
    const held = await one.claim([A]);
    await two.claim([A], {});
    await one.release(held!, 60_000);
    await waitFor(() => two.events.some(({ kind }) => kind === 'wake'), 'the one who waits was told');
    expect(two.events).toContainEqual({ kind: 'wake', pool: 'a', inMs: 60_000 });
    expect(await two.claim([A])).toBeNull();
  });

  it('let a lease lapse that nobody renews, and count one that was renewed too late all the same', async () => {
    const prefix = newPrefix();
    const [dead, other] = await Promise.all([Replica.enrolled(prefix, 60), Replica.enrolled(prefix, 60)]);
    const held = await dead.claim([A]);
    let next: Awaited<ReturnType<Replica['claim']>> = null;
    await waitFor(async () => (next = await other.claim([A])) !== null, 'the lease lapsed');
    const { lost } = await dead.store.renew([{ id: held!.lease, pools: [{ pool: A, held: 1 }] }]);
    expect(lost).toEqual([held!.lease]);
    await other.release(next!);
    expect(await other.claim([A])).toBeNull();
  });

  it('give nothing out in an empty Redis until a lease has passed, once somebody knew a fuller one', async () => {
    const prefix = newPrefix();
    const [one, two] = await Promise.all([Replica.enrolled(prefix), Replica.enrolled(prefix)]);
    const held = await one.claim([A]);
    await raw('FLUSHALL');
    const lease = [{ id: held!.lease, pools: [{ pool: A, held: 1 }] }];
    // Noticed at the next word, and the connection is made anew.
    await expect(one.store.renew(lease)).rejects.toThrow('content was lost');
    await expect(two.claim([B])).rejects.toThrow('content was lost');
    await waitFor(() => one.store.connected && two.store.connected, 'they were connected again');
    expect((await one.store.enrol(lease, [A, B])).heldBackMs).toBeGreaterThan(14_000);
    expect((await two.store.enrol([], [A, B])).heldBackMs).toBeGreaterThan(14_000);
    expect((await two.store.claim(two.id(), [ask(B)], [])).heldBackMs).toBeGreaterThan(14_000);
    const newcomer = await Replica.enrolled(prefix);
    expect((await newcomer.store.claim(newcomer.id(), [ask(B)], [])).heldBackMs).toBeGreaterThan(14_000);
  });

  it('give nothing out after a break until all others have told what they hold', async () => {
    const prefix = newPrefix();
    const [one, two] = await Promise.all([Replica.enrolled(prefix), Replica.enrolled(prefix)]);
    expect((await one.store.enrol([], [A])).heldBackMs).toBeGreaterThan(0);
    expect((await one.store.claim(one.id(), [ask(A)], [])).heldBackMs).toBeGreaterThan(0);
    await waitFor(() => two.events.some(({ kind }) => kind === 'roll'), 'the roll was called');
    await two.store.renew([]);
    expect(await one.claim([A])).not.toBeNull();
  });

  it('strike out what a replica does not tell when it comes back', async () => {
    const replica = await Replica.enrolled(newPrefix());
    await replica.claim([A]);
    await replica.store.enrol([], [A]);
    expect(await replica.claim([A])).not.toBeNull();
  });

  it('tell how far a replica is above its even share', async () => {
    const prefix = newPrefix();
    const [one, two] = await Promise.all([Replica.enrolled(prefix), Replica.enrolled(prefix)]);
    const pool: Pool = { name: 'p', limit: 4 };
    for (const held of [0, 1, 2])
      await one.store.claim(one.id(), [{ pools: [{ pool, held }], rest: null }], []);
    await waitFor(() => two.events.some(({ kind }) => kind === 'excess'), 'the other heard of it');
    expect(two.events).toContainEqual({
      kind: 'excess',
      replica: one.store.replica,
      pool: 'p',
      slots: 1,
    });
    const third = await Replica.enrolled(prefix);
    expect((await third.store.enrol([], [])).excesses).toEqual([
      { replica: one.store.replica, pool: 'p', slots: 1 },
    ]);
    await one.store.leave();
    await waitFor(() => two.events.some(({ kind }) => kind === 'gone'), 'it left');
    expect((await third.store.enrol([], [])).excesses).toEqual([]);
  });

  it('tell that again where the share has shrunk, and to a Redis that knows nothing', async () => {
    const prefix = newPrefix();
    const one = await Replica.enrolled(prefix);
    const pool: Pool = { name: 'p', limit: 4 };
    const leases = [0, 1, 2].map((n) => ({ id: `${one.store.replica}:${n}`, pools: [{ pool, held: 3 }] }));
    for (const [held, { id }] of leases.entries())
      await one.store.claim(id, [{ pools: [{ pool, held }], rest: null }], []);
    const two = await Replica.enrolled(prefix);
    const heard = (slots: number) => ({ kind: 'excess', replica: one.store.replica, pool: 'p', slots });
    await one.store.renew(leases);
    await two.store.renew([]);
    expect(two.events.filter(({ kind }) => kind === 'excess')).toEqual([heard(1)]);
    await one.store.renew(leases);
    await raw('DEL', `${prefix}excesses`);
    await one.store.enrol(leases, [pool]);
    await one.store.enrol([], [pool]);
    await two.store.renew([]);
    expect(two.events.filter(({ kind }) => kind === 'excess')).toEqual([heard(1), heard(1), heard(0)]);
  });

  it('work in a Redis Cluster, where all keys must share a hash tag', async () => {
    const cluster = await RedisServer.start(['--cluster-enabled', 'yes']);
    onTestFinished(() => cluster.kill());
    const client = createClient({ url: cluster.url });
    await client.connect();
    onTestFinished(() => client.destroy());
    await client.sendCommand(['CLUSTER', 'ADDSLOTSRANGE', '0', '16383']);
    await waitFor(
      async () => (await client.sendCommand<string>(['CLUSTER', 'INFO'])).includes('cluster_state:ok'),
      'the cluster was ready',
    );
    const replica = new Replica('x:', 15_000, cluster.url);
    await waitFor(() => replica.store.connected, 'it was connected');
    await replica.store.enrol([], [A, B]);
    const held = await replica.claim([A, B], {});
    expect(held?.granted).toBe(0);
    await replica.release(held!);
    await replica.store.renew([]);
    const sum = { name: 'q', window: { kind: 'month' } } as const;
    const one = { sum, limit: 1, used: 1, reserved: 0 };
    expect(await replica.store.reserve([one])).toMatchObject({ kind: 'granted' });
    await replica.store.settle([{ sum, part: null, used: 1, reserved: 0 }]);
    await replica.store.resume([{ sum, known: [], untold: [], reserved: 1 }]);
    expect((await replica.store.sums([sum], 0)).states).toHaveLength(1);
    expect(await replica.store.recall(['p1', 'p2'], 'id', BOUNDS)).toBe('id');
    for (const key of (await client.sendCommand(['KEYS', '*'])) as unknown as string[])
      expect(key).toMatch(/^\{x:\}/);
  });

  it('remember so many histories at most, and so much of each: what was not used for longest is forgotten', async () => {
    const prefix = newPrefix();
    const [one, two] = await Promise.all([Replica.enrolled(prefix), Replica.enrolled(prefix)]);
    const recall = async ({ store }: Replica, id: string, ...prefixes: string[]) => {
      // Each at a later moment of the clock of Redis.
      const { nowMs } = await store.sums([], 0);
      await waitFor(async () => (await store.sums([], 0)).nowMs > nowMs, 'time went on');
      return await store.recall(prefixes, id, BOUNDS);
    };
    for (const name of ['a', 'b', 'c']) expect(await recall(one, name, `${name}1`, `${name}2`)).toBe(name);
    expect(await recall(two, 'x', 'a1', 'a2', 'a3')).toBe('a');
    expect(await recall(two, 'd', 'd1')).toBe('d');
    // Without an id nothing is learnt: b was not used for longest.
    expect(await recall(one, '', 'b1', 'b2')).toBe('');
    expect(await raw('EXISTS', `${prefix}session:b1`, `${prefix}session:b2`, `${prefix}prefixes-of:b`)).toBe(
      0,
    );
    for (const name of ['a', 'c', 'd']) expect(await recall(one, '', `${name}1`)).toBe(name);
    await recall(one, 'x', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6');
    expect(await raw('SCARD', `${prefix}prefixes-of:c`)).toBe(4);
    const kept = (await raw('KEYS', `${prefix}session:c*`)) as string[];
    expect(kept).toHaveLength(4);
    for (const key of (await raw('KEYS', `${prefix}*`)) as string[])
      expect(Number(await raw('PTTL', key))).toBeGreaterThan(0);
  });

  it('leave no key that lives for ever', async () => {
    const prefix = newPrefix();
    const [one, two] = await Promise.all([Replica.enrolled(prefix), Replica.enrolled(prefix)]);
    const pool: Pool = { name: 'p', limit: 2 };
    for (const held of [0, 1]) await one.store.claim(one.id(), [{ pools: [{ pool, held }], rest: null }], []);
    await two.claim([pool], {});
    await one.store.failed({ name: 'u', baseMs: 1, capMs: 1, askedMs: 5, ageMs: 0, trial: false });
    await two.store.succeeded('u');
    await one.store.renew([]);
    await one.store.enrol([], [pool]);
    expect(await two.store.lead('probe:u', 1000)).toBe(true);
    expect(await one.store.lead('probe:u', 1000)).toBe(false);
    const keys = (await raw('KEYS', `${prefix}*`)) as string[];
    expect(keys.length).toBeGreaterThan(5);
    for (const key of keys) expect([key, Number(await raw('PTTL', key))]).toSatisfy(([, ttl]) => ttl > 0);
  });
});
