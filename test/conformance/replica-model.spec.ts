import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Lease } from '../../src/upstreams/lease.js';
import type { Waiter } from '../../src/upstreams/concurrency/waiter.js';
import { FleetModel, type ModelHolder, type Order } from '../support/fleet-model.js';
import { RedisProxy } from '../support/redis-proxy.js';
import { describeWithRedis, RedisServer } from '../support/redis-server.js';
import { fileWith, type Got, ReplicaSlots } from '../support/replica-slots.js';
import { waitFor } from '../support/wait-for.js';

const LIMITS = { a: 1, b: 2 };
const LEASE_MS = 15_000;
const FILE = fileWith(
  Object.fromEntries(Object.entries(LIMITS).map(([id, limit]) => [id, { max_concurrency: limit }])),
);

let redis: RedisServer;
let prefixes = 0;

/** Two replicas, and what they really have. */
class Fleet {
  readonly leases = new Map<number, Lease>();
  readonly waiters = new Map<number, Waiter>();
  /** What came of waits, in the order in which it came. */
  readonly news: { readonly number: number; readonly got: Got }[] = [];

  private constructor(
    readonly replicas: ReplicaSlots[],
    readonly proxies: readonly RedisProxy[],
    readonly prefix: string,
  ) {}

  static async inMemory(): Promise<Fleet> {
    const one = ReplicaSlots.inMemory(FILE);
    return await Promise.resolve(new Fleet([one, one], [], ''));
  }

  static async onRedis(): Promise<Fleet> {
    const prefix = `m${++prefixes}:`;
    const proxies = [await RedisProxy.start(redis.port), await RedisProxy.start(redis.port)];
    const fleet = new Fleet([], proxies, prefix);
    for (const by of [0, 1]) await fleet.start(by);
    return fleet;
  }

  get shares(): boolean {
    return this.proxies.length > 0;
  }

  async start(by: number): Promise<void> {
    this.replicas[by] = await ReplicaSlots.onRedis(FILE, this.proxies[by]!.url, this.prefix, LEASE_MS);
  }

  /** Whatever was said on the way has arrived, in both directions. */
  async spoken(but: number | null): Promise<void> {
    for (let i = 0; i < 3; i++)
      for (const [by, { store }] of this.replicas.entries()) if (by !== but) await store?.held(['x']);
  }

  wait(number: number, by: number, ids: readonly string[], priority: number): void {
    const waits = (waiter: Waiter) => this.waiters.set(number, waiter);
    void this.replicas[by]!.wait(ids, priority, waits).then((got) => this.news.push({ number, got }));
  }

  /** Its leases lapse, and the renewals of the others have dropped it by then. */
  async bury(replica: string): Promise<void> {
    await this.lapse(replica);
    await redis.command('ZREM', `${this.prefix}members`, replica);
  }

  /** Time passes for one replica: its leases lapse, which is never later than the time of a lease. */
  async lapse(replica: string): Promise<void> {
    await redis.command('ZADD', `${this.prefix}members`, 'XX', '1', replica);
    const [seconds] = (await redis.command('TIME')) as string[];
    for (const id of Object.keys(LIMITS)) {
      const key = `${this.prefix}pool:u:${id}`;
      for (const member of (await redis.command('ZRANGE', key, '0', '-1')) as string[]) {
        if (!member.startsWith(`${replica}:`)) continue;
        const until = Number(await redis.command('ZSCORE', key, member));
        expect(until - (Number(seconds) + 1) * 1000).toBeLessThanOrEqual(LEASE_MS);
        await redis.command('ZADD', key, '1', member);
      }
    }
  }

  async close(): Promise<void> {
    for (const lease of this.leases.values()) lease.release();
    for (const replica of new Set(this.replicas)) await replica.crash();
    for (const proxy of this.proxies) await proxy.close();
  }
}

/** Takes over who was served; each must have been whose turn it was. */
async function settle(model: FleetModel, fleet: Fleet): Promise<void> {
  const adopt = () => {
    for (const { got, number } of fleet.news.splice(0)) {
      const waiter = model.waiting.find((one) => one.number === number);
      // Its replica died, or its client has gone.
      if (waiter === undefined) continue;
      if (got === null || !('lease' in got))
        throw new Error(`${number} waited in vain: ${JSON.stringify(got)}`);
      const { id } = got.candidate.upstream;
      const head = model.head(id, model.order === 'fair' ? null : waiter.by);
      expect({ number: head?.number, id }).toEqual({ number, id });
      model.waiting.splice(model.waiting.indexOf(waiter), 1);
      fleet.leases.set(number, got.lease);
      model.holds(number, waiter.by, id);
      limited(model);
    }
  };
  await waitFor(() => {
    adopt();
    return model.away || model.quiet;
  }, 'who waits had what is free');
  if (!model.away) await fleet.spoken(model.frozen);
  adopt();
  model.order = 'fair';
}

/** Never more than the limit; nobody can promise that only where a replica slept longer than its lease. */
function limited(model: FleetModel): void {
  if (model.overslept) return;
  for (const id of model.ids) expect(model.taken(id)).toBeLessThanOrEqual(model.limits[id] as number);
}

type Command = fc.AsyncCommand<FleetModel, Fleet>;
const command = (
  name: string,
  check: (model: Readonly<FleetModel>) => boolean,
  act: (model: FleetModel, fleet: Fleet) => Promise<Order | void>,
): Command => ({
  check,
  run: async (model, fleet) => {
    model.order = (await act(model, fleet)) ?? 'fair';
    await settle(model, fleet);
    limited(model);
  },
  toString: () => name,
});

const awake = (by: number) => (model: Readonly<FleetModel>) => model.frozen !== by;
const calm = ({ away, frozen, heldBack }: Readonly<FleetModel>) => !away && !heldBack && frozen === null;
/** The fleet is no single process. */
const shared = (model: Readonly<FleetModel>) => model.shared;

const claim = (by: number, ids: readonly string[]) =>
  command(`replica ${by} claims ${ids.join()}`, awake(by), async (model, fleet) => {
    const got = await fleet.replicas[by]!.claim(...ids);
    const id = got?.candidate.upstream.id ?? null;
    if (!model.away) expect(id).toBe(model.first(ids));
    // Without a store each lives on what it held, or on its share, which is nothing of one slot.
    else if (id === 'a') expect(model.keeps(by, id)).toBe(true);
    else if (id === null) expect(ids.filter((one) => model.keeps(by, one))).toEqual([]);
    if (got === null || id === null) return;
    fleet.leases.set(++model.numbers, got.lease);
    model.holds(model.numbers, by, id);
  });

const wait = (by: number, ids: readonly string[], priority: number) =>
  command(
    `replica ${by} waits for ${ids.join()} with ${priority}`,
    (model) => model.frozen !== by && !model.away,
    async (model, fleet) => {
      const number = ++model.numbers;
      model.waiting.push({ number, by, ids, priority });
      const cameAt = performance.now();
      fleet.wait(number, by, ids, priority);
      await fleet.spoken(model.frozen);
      // Replicas compare arrivals by whole milliseconds: who comes later comes later by some of them.
      await waitFor(() => performance.now() > cameAt + 5, 'time went on');
    },
  );

const release = (which: number) =>
  command(
    `holder ${which} ends`,
    ({ frozen, holders }) => holders.some(({ by }) => by !== frozen),
    async (model, fleet) => {
      const able = model.holders.filter(({ by }) => by !== model.frozen);
      const holder = able[which % able.length] as ModelHolder;
      model.holders.splice(model.holders.indexOf(holder), 1);
      fleet.leases.get(holder.number)?.release();
      fleet.leases.delete(holder.number);
      if (model.frozen === null) return model.away ? 'own' : 'fair';
      // A place that was kept for who sleeps is anybody's after a while.
      await fleet.spoken(model.frozen);
      await waitFor(async () => {
        const [seconds, micros] = (await redis.command('TIME')) as string[];
        const now = Number(seconds) * 1000 + Number(micros) / 1000;
        const key = `${fleet.prefix}pool:u:${holder.id}`;
        const places = (await redis.command(
          'ZRANGE',
          key,
          `(${Math.floor(now)}`,
          '+inf',
          'BYSCORE',
        )) as string[];
        return !places.some(
          (place) => place === `r:${fleet.replicas[model.frozen as number]!.store?.replica}`,
        );
      }, 'nothing is kept for who sleeps');
      return 'own';
    },
  );

const leave = (which: number) =>
  command(
    `waiter ${which} leaves`,
    ({ frozen, waiting }) => waiting.some(({ by }) => by !== frozen),
    async (model, fleet) => {
      const able = model.waiting.filter(({ by }) => by !== model.frozen);
      const waiter = able[which % able.length]!;
      model.waiting.splice(model.waiting.indexOf(waiter), 1);
      fleet.replicas[waiter.by]!.service.leave(fleet.waiters.get(waiter.number)!);
      if (!model.away) await fleet.spoken(model.frozen);
    },
  );

const crash = (by: number) =>
  command(
    `replica ${by} dies`,
    (model) => shared(model) && calm(model),
    async (model, fleet) => {
      const old = fleet.replicas[by]!;
      await old.crash();
      model.orphans.push(...model.holders.filter((holder) => holder.by === by));
      model.holders = model.holders.filter((holder) => holder.by !== by);
      model.waiting = model.waiting.filter((waiter) => waiter.by !== by);
      await fleet.start(by);
      // Its slots are nobody's yet.
      for (const id of model.ids) {
        if (model.isFree(id)) continue;
        expect(await fleet.replicas[1 - by]!.claim(id)).toBeNull();
      }
      model.dead.push(old.store!.replica);
      return 'own';
    },
  );

const lapse = () =>
  command('the leases of the dead lapse', ({ away, dead, frozen }) => dead.length > 0 && !away && frozen === null, async (model, fleet) => {
    for (const replica of model.dead) await fleet.bury(replica);
    model.dead = [];
    model.orphans = [];
    return await Promise.resolve('own');
  }); // prettier-ignore

const freeze = (by: number, long: boolean) =>
  command(
    `replica ${by} freezes${long ? ' for longer than its lease' : ''}`,
    (model) => shared(model) && calm(model),
    async (model, fleet) => {
      fleet.proxies[by]!.freeze();
      model.frozen = by;
      if (!long) return;
      await fleet.lapse(fleet.replicas[by]!.store!.replica);
      for (const holder of model.holders) {
        if (holder.by !== by) continue;
        holder.forgotten = true;
        holder.overslept = true;
      }
      return 'own';
    },
  );

const thaw = () =>
  command('it goes on', ({ frozen }) => frozen !== null, async (model, fleet) => {
    fleet.proxies[model.frozen!]!.thaw();
    model.frozen = null;
    // The first thing that it does: its timer has long been due.
    await redis.command('PUBLISH', `${fleet.prefix}events`, JSON.stringify({ t: 'roll', r: '' }));
    await fleet.spoken(null);
    for (const holder of model.holders) holder.forgotten = false;
    return 'own';
  }); // prettier-ignore

const cut = () =>
  command('Redis is out of reach', (model) => shared(model) && calm(model), async (model, fleet) => {
    for (const proxy of fleet.proxies) proxy.cut();
    model.away = true;
    model.kept = model.holders.slice();
    await waitFor(() => fleet.replicas.every(({ joined }) => !joined), 'both know');
    return 'own';
  }); // prettier-ignore

const mend = () =>
  command('Redis is within reach', ({ away }) => away, async (model, fleet) => {
    for (const proxy of fleet.proxies) proxy.mend();
    await waitFor(() => fleet.replicas.every(({ joined }) => joined), 'both are back');
    model.away = false;
    // Each waits for the other's word, and for that of the dead: nobody can know what those still run.
    model.heldBack = model.dead.length > 0;
    const heldBack = async () => (await redis.command('EXISTS', `${fleet.prefix}held-back`)) === 1;
    await waitFor(async () => (await heldBack()) === model.heldBack, 'both have spoken');
    return 'own';
  }); // prettier-ignore

const empty = () =>
  command('Redis starts anew, empty', (model) => shared(model) && calm(model), async (model, fleet) => {
    await redis.kill();
    await waitFor(() => fleet.replicas.every(({ joined }) => !joined), 'both know');
    await redis.up();
    await waitFor(() => fleet.replicas.every(({ joined }) => joined), 'both are back');
    model.heldBack = true;
    return 'own';
  }); // prettier-ignore

const given = () =>
  command('the time of a lease has passed since', ({ away, heldBack }) => heldBack && !away, async (model, fleet) => {
    expect(await redis.command('PEXPIRE', `${fleet.prefix}held-back`, '1')).toBe(1);
    await waitFor(async () => (await redis.command('EXISTS', `${fleet.prefix}held-back`)) === 0, 'it is over');
    model.heldBack = false;
    for (const replica of model.dead) await fleet.bury(replica);
    model.dead = [];
    model.orphans = [];
    return 'own';
  }); // prettier-ignore

const by = fc.nat(1);
const which = fc.nat(20);
const ids = fc.constantFrom(['a'], ['a'], ['b'], ['a', 'b'], ['b', 'a']);
const claims = fc.tuple(by, ids).map((all) => claim(...all));
const waits = fc.tuple(by, ids, fc.constantFrom(-1, 0, 0, 5)).map((all) => wait(...all));
const ends = which.map(release);
const usual = [claims, waits, waits, waits, ends, ends, ends, which.map(leave)];
const troubles = [
  by.map(crash), fc.constant(null).map(lapse), fc.tuple(by, fc.boolean()).map((all) => freeze(...all)), fc.constant(null).map(thaw),
  fc.constant(null).map(cut), fc.constant(null).map(mend), fc.constant(null).map(empty), fc.constant(null).map(given),
]; // prettier-ignore

/** Each trouble once, at a moment at which it matters; chance need not find it. */
const STORY = () => [
  claim(0, ['a']), wait(1, ['a'], 0), wait(1, ['a'], 5), wait(0, ['a'], -1), crash(0), lapse(), wait(0, ['a'], 9),
  release(0), freeze(0, false), release(0), thaw(), release(0), claim(0, ['b']), claim(1, ['b']), wait(0, ['a', 'b'], 0),
  wait(1, ['b'], 5), cut(), release(0), claim(0, ['a']), claim(1, ['a']), release(0), mend(), wait(0, ['a'], 0), release(0), empty(),
  claim(0, ['a', 'b']), release(0), wait(1, ['a'], 0), given(), claim(1, ['a']), freeze(1, true), claim(0, ['a']), thaw(),
  release(0), release(0), wait(0, ['a'], 0), crash(1), cut(), mend(), claim(0, ['b']), given(), claim(0, ['b']),
]; // prettier-ignore

async function followed(
  start: () => Promise<Fleet>,
  commands: fc.Arbitrary<Iterable<Command>>,
  numRuns: number,
  stories: readonly Command[][] = [],
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(commands, async (steps) => {
      const real = await start();
      const model = new FleetModel(LIMITS, real.shares);
      try {
        await fc.asyncModelRun(() => ({ model, real }), steps);
      } finally {
        await real.close();
      }
    }),
    { numRuns, endOnFailure: true, examples: stories.map((story): [Iterable<Command>] => [story]) },
  );
}

describe('two that claim and wait in one process', () => {
  it('follow the model, whatever they do', async () => {
    await followed(() => Fleet.inMemory(), fc.commands(usual, { maxCommands: 60, size: 'max' }), 60);
  });
});

describeWithRedis('two replicas that claim and wait on one Redis', () => {
  beforeAll(async () => {
    redis = await RedisServer.start();
  });
  afterAll(() => redis.kill());

  it('follow the model, whatever they do', async () => {
    await followed(() => Fleet.onRedis(), fc.commands(usual, { maxCommands: 40, size: 'max' }), 15);
  }, 60_000);

  it('follow it whatever becomes of them and of Redis', async () => {
    const all = [...usual, ...usual, ...troubles];
    await followed(() => Fleet.onRedis(), fc.commands(all, { maxCommands: 30, size: 'max' }), 15, [STORY()]);
  }, 120_000);
});
