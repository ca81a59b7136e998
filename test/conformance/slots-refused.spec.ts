import { expect, it, onTestFinished } from 'vitest';
import { describeWithRedis, RedisServer } from '../support/redis-server.js';
import { fileWith, ReplicaSlots } from '../support/replica-slots.js';
import { waitFor } from '../support/wait-for.js';

const LEASE_MS = 900;

async function twoReplicas(): Promise<[RedisServer, ReplicaSlots, ReplicaSlots]> {
  const server = await RedisServer.start();
  onTestFinished(() => server.kill());
  const file = fileWith({ a: { max_concurrency: 1 } });
  const start = () => ReplicaSlots.onRedis(file, server.url, 's:', LEASE_MS);
  const [one, two] = await Promise.all([start(), start()]);
  onTestFinished(async () => {
    await Promise.all([one.close(), two.close()]);
  });
  return [server, one, two];
}

const refuse = (server: RedisServer) => server.command('REPLICAOF', '127.0.0.1', '1');
const serve = (server: RedisServer) => server.command('REPLICAOF', 'NO', 'ONE');
const away = (replica: ReplicaSlots) => waitFor(() => !replica.shares, 'it noticed');
const back = (replica: ReplicaSlots) => waitFor(() => replica.shares, 'it is back');

describeWithRedis('slots on a Redis that refuses for a while', () => {
  it('stay with who holds them, though no lease could be renewed and all have lapsed', async () => {
    const [server, one, two] = await twoReplicas();
    const held = await one.claim('a');
    expect(held).not.toBeNull();
    await refuse(server);
    await Promise.all([away(one), away(two)]);
    const lapses = await server.lastIn('s:pool:u:a');
    await waitFor(async () => (await server.nowMs()) > lapses, 'the lease has lapsed');
    await serve(server);
    // From the first moment on, whoever is back first.
    await waitFor(async () => {
      expect(await two.claim('a')).toBeNull();
      return one.shares && two.shares;
    }, 'both are back');
    for (let n = 0; n < 20; n++) expect(await two.claim('a')).toBeNull();
    held?.lease.release();
    await waitFor(async () => (await two.claim('a')) !== null, 'it was free');
  });

  it('are free afterwards where they were given back meanwhile: long before their leases lapse', async () => {
    const server = await RedisServer.start();
    onTestFinished(() => server.kill());
    const file = fileWith({ a: { max_concurrency: 1 } });
    const start = () => ReplicaSlots.onRedis(file, server.url, 's:', 600_000);
    const [one, two] = await Promise.all([start(), start()]);
    onTestFinished(async () => {
      await Promise.all([one.close(), two.close()]);
    });
    const held = await one.claim('a');
    await refuse(server);
    held?.lease.release();
    await away(one);
    await serve(server);
    await Promise.all([back(one), back(two)]);
    await waitFor(async () => (await two.claim('a')) !== null, 'it was free');
  });

  it('are left to those who held them before another replica came, when it is gone', async () => {
    const server = await RedisServer.start();
    onTestFinished(() => server.kill());
    const file = fileWith({ a: { max_concurrency: 4 } });
    const start = () => ReplicaSlots.onRedis(file, server.url, 's:');
    const one = await start();
    for (let n = 0; n < 3; n++) expect(await one.claim('a')).not.toBeNull();
    const two = await start();
    onTestFinished(async () => {
      await Promise.all([one.close(), two.close()]);
    });
    await waitFor(
      async () => (await server.command('HVALS', 's:excesses'))?.toString() === '1',
      'it told how far it is above its share',
    );
    await server.kill();
    await away(two);
    await waitFor(async () => (await two.claim('a')) !== null, 'it lives on its share');
    expect(await two.claim('a')).toBeNull();
  });
});
