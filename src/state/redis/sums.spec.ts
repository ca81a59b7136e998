import { readFileSync } from 'node:fs';
import { createClient } from '@redis/client';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { describeWithRedis, RedisServer } from '../../../test/support/redis-server.js';
import { waitFor } from '../../../test/support/wait-for.js';
import { calendarOf, isOneMonth, offsetOf } from '../../quotas/window/calendar.js';
import { parseDuration } from '../../common/time/duration.js';
import type { Sum, SumAsk, SumWindow } from '../shared-sums.js';
import type { StoreEvent } from '../shared-types.js';
import { RedisStore } from './redis-store.js';
import { toldSum } from './sum-words.js';

let server: RedisServer;
let tests = 0;
const newPrefix = () => `n${++tests}:`;

class Replica {
  readonly events: StoreEvent[] = [];
  readonly store: RedisStore;

  private constructor(prefix: string, leaseMs: number, timeoutMs: number) {
    this.store = new RedisStore({ url: server.url, prefix, timeoutMs, leaseMs, newcomerMs: 0 });
    this.store.open({
      connected: () => {},
      lost: () => {},
      happened: (event) => this.events.push(event),
    });
    onTestFinished(() => this.store.close());
  }

  static async enrolled(prefix: string, leaseMs = 15_000, timeoutMs = 1000): Promise<Replica> {
    const replica = new Replica(prefix, leaseMs, timeoutMs);
    await waitFor(() => replica.store.connected, 'it was connected');
    await replica.store.enrol([], []);
    return replica;
  }

  async total(sum: Sum): Promise<[used: number, reserved: number]> {
    const { states } = await this.store.sums([sum], 0);
    const add = (numbers: Iterable<number>) => [...numbers].reduce((all, one) => all + one, 0);
    return [add(states[0]?.parts.values() ?? []), add(states[0]?.reserved.values() ?? [])];
  }
}

const DAY = 86_400_000;
const LONG: SumWindow = { kind: 'calendar', lengthMs: 360 * DAY, offsetMs: 0 };
const SLIDING: SumWindow = { kind: 'sliding', lengthMs: DAY };
const requests = (sum: Sum, limit: number): SumAsk => ({ sum, limit, used: 1, reserved: 0 });
const tokens = (sum: Sum, limit: number, reserved: number): SumAsk => ({ sum, limit, used: 0, reserved });

const raw = (...args: string[]) => server.command(...args);

describeWithRedis('the scripts of quotas', () => {
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.kill());

  it('take of all, or of none, and say which are used up and until when', async () => {
    const one = await Replica.enrolled(newPrefix());
    const [a, b, c]: Sum[] = [
      { name: 'a', window: LONG },
      { name: 'b', window: { kind: 'month' } },
      { name: 'c', window: SLIDING },
    ];
    const all = [requests(a!, 9), requests(b!, 1), requests(c!, 1)];
    const granted = await one.store.reserve(all);
    const now = new Date();
    expect(granted).toMatchObject({
      parts: [Math.floor(Date.now() / LONG.lengthMs) * LONG.lengthMs, Date.UTC(now.getUTCFullYear(), now.getUTCMonth()), expect.any(Number) as number],
    }); // prettier-ignore
    const refused = await one.store.reserve(all);
    if (refused.kind !== 'used up') throw new Error(refused.kind);
    expect(refused.closed.map(({ ask }) => ask)).toEqual([1, 2]);
    const turnMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1) - Date.now();
    expect(Math.abs((refused.closed[0]?.ms ?? 0) - turnMs)).toBeLessThan(5000);
    expect(refused.closed[1]?.ms).toBeGreaterThan(DAY - 5000);
    expect(refused.closed[1]?.ms).toBeLessThanOrEqual(DAY + DAY / 120);
    expect(await one.total(a!)).toEqual([1, 0]);
  });

  it('tell the others what was used and what is reserved', async () => {
    const prefix = newPrefix();
    const [one, two] = await Promise.all([Replica.enrolled(prefix), Replica.enrolled(prefix)]);
    const sum = { name: 's', window: LONG };
    const other = { name: 't', window: LONG };
    await one.store.reserve([requests(sum, 5), tokens(other, 100, 40)]);
    await one.store.settle([{ sum: other, part: null, used: 7, reserved: -40 }]);
    await two.store.held(['x']);
    const heard = two.events.filter(({ kind }) => kind === 'counted' || kind === 'reserved');
    const part = Math.floor(Date.now() / LONG.lengthMs) * LONG.lengthMs;
    const { replica } = one.store;
    expect(heard).toEqual([
      { kind: 'counted', sum: 's', part, amount: 1 },
      { kind: 'reserved', sum: 't', replica, tokens: 40 },
      { kind: 'reserved', sum: 't', replica, tokens: 0 },
      { kind: 'counted', sum: 't', part, amount: 7 },
    ]);
    expect(one.events.filter(({ kind }) => kind === 'counted')).toEqual([]);
  });

  it('take for used what a replica had reserved that died, and are right when it comes back after all', async () => {
    const prefix = newPrefix();
    const [one, two] = await Promise.all([Replica.enrolled(prefix, 300), Replica.enrolled(prefix, 300)]);
    const sum = { name: 's', window: LONG };
    await one.store.reserve([tokens(sum, 100, 60)]);
    await waitFor(async () => {
      await two.store.renew([]);
      return two.events.some(({ kind }) => kind === 'gone');
    }, 'it fell silent');
    expect(await two.store.reserve([tokens(sum, 100, 30)])).toMatchObject({ kind: 'granted' });
    expect(await two.total(sum)).toEqual([60, 30]);
    expect(await two.store.reserve([tokens(sum, 90, 1)])).toMatchObject({ kind: 'used up' });
    expect(two.events).toContainEqual(expect.objectContaining({ kind: 'counted', amount: 60 }));
    await one.store.settle([{ sum, part: null, used: 11, reserved: -60 }]);
    expect(await two.total(sum)).toEqual([11, 30]);
  });

  it.each([LONG, SLIDING])(
    'hear of a sum again from all that knew it, and what each counted alone: %j',
    async (window) => {
      const prefix = newPrefix();
      const [one, two] = await Promise.all([Replica.enrolled(prefix), Replica.enrolled(prefix)]);
      const sum = { name: 's', window };
      const at = (ageMs: number) => (window.kind === 'sliding' ? ageMs : Date.now() - ageMs);
      const memory = (known: number, untold: number, reserved: number) => ({
      sum,
      known: known === 0 ? [] : [[at(5000), known - 1], [at(0), 1]] as [number, number][],
      untold: untold === 0 ? [] : [[at(0), untold]] as [number, number][],
      reserved,
    }); // prettier-ignore
      // As of an empty Redis: both knew of 10, and counted 2 and 3 since.
      await one.store.resume([memory(10, 2, 5)]);
      expect(await one.total(sum)).toEqual([12, 5]);
      await two.store.resume([memory(10, 3, 0)]);
      expect(await two.total(sum)).toEqual([15, 5]);
      // As of one that has kept its memory.
      await one.store.resume([memory(15, 0, 0)]);
      expect(await one.total(sum)).toEqual([15, 0]);
    },
  );

  it('forget what is older than a window', async () => {
    const one = await Replica.enrolled(newPrefix());
    const known: [number, number][] = [[DAY + DAY / 60, 7], [DAY / 2, 2], [0, 1]]; // prettier-ignore
    const sum = { name: 's', window: SLIDING };
    await one.store.resume([{ sum, known, untold: [[DAY * 2, 4]], reserved: 0 }]);
    expect(await one.total(sum)).toEqual([3, 0]);
  });

  it('give an answer back that came too late', async () => {
    const prefix = newPrefix();
    const [one, two] = [await Replica.enrolled(prefix, 15_000, 150), await Replica.enrolled(prefix)];
    const [a, b] = [{ name: 'a', window: LONG }, { name: 'b', window: LONG }]; // prettier-ignore
    await one.store.settle([{ sum: a, part: null, used: 1, reserved: 0 }]);
    const pause = raw('CLIENT', 'PAUSE', '400', 'ALL');
    await pause;
    await expect(one.store.reserve([requests(a, 9), tokens(b, 9, 5)])).rejects.toThrow('no answer');
    await waitFor(async () => {
      const known = await Promise.all([two.total(a), two.total(b)]);
      return JSON.stringify(known) === '[[1,0],[0,0]]' && two.events.some((event) => event.kind === 'counted' && event.amount === -1);
    }, 'it was given back'); // prettier-ignore
  });

  it('say nothing while others are to speak first, and after a loss of memory', async () => {
    const prefix = newPrefix();
    const one = await Replica.enrolled(prefix);
    await raw('SET', `${prefix}held-back`, 'epoch', 'PX', '60000');
    const ask = [requests({ name: 's', window: LONG }, 1)];
    expect(await one.store.reserve(ask)).toMatchObject({ kind: 'held back' });
    await raw('DEL', `${prefix}held-back`, `${prefix}epoch`);
    await expect(one.store.reserve(ask)).rejects.toThrow('its content was lost');
  });

  it('leave no key that lives for ever, and few fields', async () => {
    const prefix = newPrefix();
    const one = await Replica.enrolled(prefix);
    const sum = { name: 's', window: { kind: 'sliding', lengthMs: 1200 } } as const;
    const untold = Array.from({ length: 400 }, (_, i): [number, number] => [i * 3, 1]);
    for (let i = 0; i < 3; i++) {
      await one.store.resume([{ sum, known: [], untold, reserved: 4 }]);
      const { nowMs } = await one.store.sums([sum], 0);
      await waitFor(async () => (await one.store.sums([sum], 0)).nowMs > nowMs + 1300, 'a window has passed');
    }
    expect(Number(await raw('HLEN', `${prefix}sum:s`))).toBeLessThanOrEqual(251);
    const keys = (await raw('KEYS', `${prefix}*`)) as string[];
    expect(keys).toEqual(expect.arrayContaining([`${prefix}sum:s`, `${prefix}reserved:s`]));
    for (const key of keys) expect([key, Number(await raw('PTTL', key))]).toSatisfy(([, ttl]) => ttl > 0);
  }, 20_000);

  it('know the same windows as the calendar of this process, at any moment', async () => {
    const lua = (name: string) => readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8');
    const end = 'return whole(part_of(cjson.decode(ARGV[1]), tonumber(ARGV[2])))';
    const script = `${lua('common')}\n${lua('counting')}\n${end}`;
    const client = createClient({ url: server.url });
    await client.connect();
    onTestFinished(() => client.destroy());
    const texts = fc.constantFrom('PT1S', 'PT7S', 'PT1H', 'P1D', 'P3D', 'P1W', 'P7D', 'P30D', 'P1M', 'P1Y');
    const moment = fc.integer({ min: Date.UTC(1999, 0), max: Date.UTC(2101, 0) });
    await fc.assert(
      fc.asyncProperty(texts, moment, async (text, atMs) => {
        const ms = parseDuration(text) ?? 0;
        const window: SumWindow = isOneMonth(text)
          ? { kind: 'month' }
          : { kind: 'calendar', lengthMs: ms, offsetMs: offsetOf(ms) };
        const told = JSON.stringify(toldSum({ name: '', window }).w);
        const part = Number(await client.sendCommand(['EVAL', script, '0', told, String(atMs)]));
        expect(part).toBe(calendarOf({ text, ms })(atMs).startMs);
      }),
      { numRuns: 500 },
    );
  });
});
