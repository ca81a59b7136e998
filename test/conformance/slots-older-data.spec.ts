import { expect, it, onTestFinished } from 'vitest';
import { RedisProxy } from '../support/redis-proxy.js';
import { describeWithRedis } from '../support/redis-server.js';
import { withSnapshot } from '../support/redis-snapshot.js';
import { fileWith, ReplicaSlots } from '../support/replica-slots.js';
import { waitFor } from '../support/wait-for.js';

const LEASE_MS = 3000;

describeWithRedis('slots on a Redis that comes back with older data', () => {
  it.each([
    ['before their holder came', false],
    ['before they were claimed', true],
  ])('stay with who holds them: %s', async (_, joined) => {
    const { comeBack, server, take } = await withSnapshot();
    const file = fileWith({ a: { max_concurrency: 1 } });
    const way = await RedisProxy.start(server.port);
    onTestFinished(() => way.close());
    const start = async (url: string) => {
      const replica = await ReplicaSlots.onRedis(file, url, 'o:', LEASE_MS);
      onTestFinished(() => replica.close());
      return replica;
    };
    const one = await start(server.url);
    if (!joined) await take();
    const two = await start(way.url);
    if (joined) await take();
    const held = await two.claim('a');
    expect(held).not.toBeNull();
    way.cut();
    await comeBack();
    // From the first moment on; and after the time for which nothing is given out.
    const backIs = (back: () => boolean | Promise<boolean>, what: string) =>
      waitFor(async () => {
        expect(await one.claim('a')).toBeNull();
        return back();
      }, what);
    await backIs(() => one.shares, 'the other one is back first');
    for (let n = 0; n < 20; n++) expect(await one.claim('a')).toBeNull();
    way.mend();
    await backIs(() => two.shares, 'its holder is back');
    const heldBack = async () => Number(await server.command('EXISTS', 'o:held-back')) === 1;
    await backIs(async () => !(await heldBack()), 'limits are given out again');
    for (let n = 0; n < 20; n++) expect(await one.claim('a')).toBeNull();
    held?.lease.release();
    await waitFor(async () => (await one.claim('a')) !== null, 'it was free');
  });
});
