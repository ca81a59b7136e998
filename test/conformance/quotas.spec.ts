import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { QuotaTicket } from '../../src/quotas/quota-ticket.js';
import { describeWithRedis, RedisServer } from '../support/redis-server.js';
import { ReplicaQuotas } from '../support/replica-quotas.js';
import { waitFor } from '../support/wait-for.js';

let redis: RedisServer;
let prefixes = 0;
const newPrefix = () => `q${++prefixes}:`;
/** Turns so seldom that no test meets it. */
const LONG = 'P360D';

type Quota = ConstructorParameters<typeof ReplicaQuotas>[0];
/** As many replicas of one file as are asked for; in memory there is only one. */
type Replicas = (quota: Quota, count: number) => Promise<readonly ReplicaQuotas[]>;

const inMemory: Replicas = (quota, count) => {
  const one = new ReplicaQuotas(quota, null);
  return Promise.resolve(Array.from({ length: count }, () => one));
};

const onRedis: Replicas = async (quota, count) => {
  const replicas = await ReplicaQuotas.several(count, quota, { url: redis.url, prefix: newPrefix() });
  onTestFinished(async () => {
    await Promise.all(replicas.map((replica) => replica.close()));
  });
  return replicas;
};

/** What quotas promise, however many count them. */
function quotaContract(replicas: Replicas): void {
  it.each(['calendar', 'sliding'])('let exactly as many of a crowd in as are left (%s)', async (window) => {
    const all = await replicas({ upstream: [{ requests: 3, per: LONG, window }] }, 2);
    const got = await Promise.all(Array.from({ length: 8 }, (_, i) => all[i % 2]!.take()));
    expect(got.filter((ticket) => ticket !== null)).toHaveLength(3);
    for (const replica of all) {
      expect(replica.closedMs()).toBeGreaterThan(1000);
      expect(await replica.take()).toBeNull();
      expect(replica.left()).toBe(0);
    }
  });

  it('take of all that count, or of none', async () => {
    const all = await replicas(
      { provider: [{ requests: 2, per: LONG }], upstream: [{ requests: 5, per: 'P1M' }, { tokens: 1000, per: 'P1W' }] },
      2,
    ); // prettier-ignore
    const got = await Promise.all(Array.from({ length: 6 }, (_, i) => all[i % 2]!.take(10)));
    expect(got.filter((ticket) => ticket !== null)).toHaveLength(2);
    await Promise.all(all.map((replica) => replica.heard()));
    for (const replica of all) expect([0, 1, 2].map((meter) => replica.left(meter))).toEqual([0, 3, 980]);
  });

  it('give back what never reached the provider, to whomever', async () => {
    const all = await replicas(
      {
        upstream: [
          { requests: 1, per: LONG },
          { tokens: 10, per: 'P1D' },
        ],
      },
      2,
    );
    const [one, two] = all as [ReplicaQuotas, ReplicaQuotas];
    const held = await one.take(10);
    expect(await two.take(10)).toBeNull();
    held?.giveBack();
    held?.settle(5);
    await waitFor(async () => (await two.take(10)) !== null, 'it was free again');
    await one.heard();
    expect([one.left(0), one.left(1)]).toEqual([0, 0]);
  });

  it('count what was used for what was reserved', async () => {
    const all = await replicas({ upstream: [{ tokens: 100, per: 'P1M' }] }, 2);
    const [one, two] = all as [ReplicaQuotas, ReplicaQuotas];
    const held = await one.take(60);
    expect(await two.take(60)).not.toBeNull();
    expect(await one.take(1)).toBeNull();
    held?.settle(5);
    await one.heard();
    await two.heard();
    expect([one.left(), two.left()]).toEqual([35, 35]);
    expect(await two.take(1)).not.toBeNull();
  });

  it('follow a plain count, whatever is taken, settled and given back', async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('take' as const), by: fc.nat(2), crowd: fc.integer({ min: 1, max: 4 }), tokens: fc.nat(40) }),
      fc.record({ do: fc.constant('settle' as const), which: fc.nat(), tokens: fc.nat(60) }),
      fc.record({ do: fc.constant('give back' as const), which: fc.nat() }),
    ); // prettier-ignore
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('calendar', 'sliding'), fc.array(step, { maxLength: 30 }), async (window, steps) => {
        const all = await replicas({ upstream: [{ requests: 7, per: LONG, window }, { tokens: 200, per: LONG, window }] }, 3);
        const open: { ticket: QuotaTicket; tokens: number }[] = [];
        let [requests, used, reserved] = [0, 0, 0];
        for (const one of steps) {
          if (one.do === 'take') {
            const crowd = Array.from({ length: one.crowd }, (_, i) => all[(one.by + i) % 3]!.take(one.tokens));
            for (const ticket of await Promise.all(crowd)) {
              // Which of them comes first makes no difference: they are all alike.
              const fits = requests < 7 && used + reserved < 200;
              if (ticket === null) continue;
              expect(fits).toBe(true);
              requests++;
              reserved += one.tokens;
              open.push({ ticket, tokens: one.tokens });
            }
            await Promise.all(all.map((replica) => replica.heard()));
          } else if (open.length > 0) {
            const [{ ticket, tokens }] = open.splice(one.which % open.length, 1) as [(typeof open)[number]];
            reserved -= tokens;
            if (one.do === 'settle') {
              ticket.settle(one.tokens);
              used += one.tokens;
            } else {
              ticket.giveBack();
              requests--;
            }
            // First it is told, then it is heard.
            await Promise.all(all.map((replica) => replica.heard()));
            await Promise.all(all.map((replica) => replica.heard()));
          }
          for (const replica of all)
            expect([replica.left(0), replica.left(1)]).toEqual([7 - requests, 200 - used - reserved]);
          if (requests < 7 && used + reserved < 200) for (const replica of all) expect(replica.closedMs()).toBe(0);
        }
        await Promise.all(all.map((replica) => replica.close()));
      }),
      { numRuns: 20 },
    ); // prettier-ignore
  }, 60_000);
}

describe('quotas in memory', () => quotaContract(inMemory));

describeWithRedis('quotas on Redis', () => {
  beforeAll(async () => {
    redis = await RedisServer.start();
  });
  afterAll(() => redis.kill());

  quotaContract(onRedis);

  it('are not above the limit, whenever Redis goes and comes back empty', async () => {
    const own = await RedisServer.start();
    onTestFinished(() => own.kill());
    const crowd = fc.array(fc.nat(2), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(
        fc.record({ count: fc.integer({ min: 2, max: 3 }), limit: fc.integer({ min: 1, max: 12 }), before: crowd, gone: crowd, back: crowd, after: crowd, window: fc.constantFrom('calendar', 'sliding') }),
        async ({ after, back, before, count, gone, limit, window }) => {
          const replicas = await ReplicaQuotas.several(
            count,
            { upstream: [{ requests: limit, per: LONG, window }] },
            { url: own.url, prefix: newPrefix(), leaseMs: 1500 },
          );
          let sent = 0;
          const send = async (by: readonly number[]) => {
            const got = await Promise.all(by.map((one) => replicas[one % count]!.take()));
            sent += got.filter((ticket) => ticket !== null).length;
            expect(sent).toBeLessThanOrEqual(limit);
          };
          await send(before);
          expect(sent).toBe(Math.min(limit, before.length));
          const left = limit - sent;
          // Trap: Redis writes its answer before its messages; a kill between the two is beyond what is promised.
          await Promise.all(replicas.map((replica) => replica.heard()));
          await own.kill();
          await waitFor(() => replicas.every(({ state }) => state?.ok === false), 'all noticed');
          for (const by of gone) await send([by]);
          expect(sent).toBeGreaterThanOrEqual(limit - left);
          await own.up();
          await send(back);
          await waitFor(() => replicas.every(({ state }) => state?.ok === true), 'all are back');
          await send(back);
          await waitFor(() => replicas.every(({ synced }) => synced), 'they count together again');
          await send(after);
          for (let i = 0; sent < limit && i < 100; i++) {
            const before = sent;
            await send([i]);
            if (sent === before) break;
          }
          // Nothing is lost either.
          expect(sent).toBe(limit);
          await Promise.all(replicas.map((replica) => replica.close()));
        },
      ),
      { numRuns: 8, endOnFailure: true },
    ); // prettier-ignore
  }, 120_000);
});
