import { expect, it, onTestFinished } from 'vitest';
import { describeWithRedis, RedisServer } from '../../../test/support/redis-server.js';
import { waitFor } from '../../../test/support/wait-for.js';
import type { Pool } from '../shared-types.js';
import { RedisStore } from './redis-store.js';

const A: Pool = { name: 'a', limit: 1 };

async function serverOfOwn(): Promise<RedisServer> {
  const server = await RedisServer.start();
  onTestFinished(() => server.kill());
  return server;
}

class Replica {
  readonly losses: string[] = [];
  readonly store: RedisStore;
  unseenMs = 0;

  constructor(url: string, leaseMs = 15_000, newcomerMs = 0) {
    this.store = new RedisStore({ url, prefix: 'r:', timeoutMs: 1000, leaseMs, newcomerMs });
    this.store.open({
      connected: () => {},
      lost: (reason, unseenMs) => {
        this.losses.push(reason);
        this.unseenMs = unseenMs ?? 0;
      },
      happened: () => {},
    });
    onTestFinished(() => this.store.close());
  }

  static async enrolled(url: string, leaseMs?: number): Promise<Replica> {
    const replica = new Replica(url, leaseMs);
    await replica.connected();
    await replica.store.enrol([], [A]);
    return replica;
  }

  connected(): Promise<void> {
    return waitFor(() => this.store.connected, 'it was connected');
  }

  get lease() {
    return { id: `${this.store.replica}:1`, pools: [{ pool: A, held: 0 }] };
  }

  async claim() {
    const { lease } = this;
    return await this.store.claim(lease.id, [{ pools: lease.pools, rest: null }], []);
  }
}

describeWithRedis('a Redis that answers and refuses', () => {
  it.each([
    ['READONLY', ['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE']],
    [
      'NOREPLICAS',
      ['CONFIG', 'SET', 'min-replicas-to-write', '1'],
      ['CONFIG', 'SET', 'min-replicas-to-write', '0'],
    ],
    ['NOPERM', ['ACL', 'SETUSER', 'default', '-@scripting'], ['ACL', 'SETUSER', 'default', '+@all']],
    ['NOPERM', ['ACL', 'SETUSER', 'default', 'resetkeys', '~z*'], ['ACL', 'SETUSER', 'default', '~*']],
    ['NOPERM', ['ACL', 'SETUSER', 'default', '-publish'], ['ACL', 'SETUSER', 'default', '+@all']],
    ['OOM', ['CONFIG', 'SET', 'maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '0']],
  ])('is noticed without a word from anybody, and so is its end: %s by %s', async (word, begin, end) => {
    const server = await serverOfOwn();
    const { losses, store } = await Replica.enrolled(server.url);
    await server.command(...begin);
    await waitFor(() => losses.length > 2, 'it was noticed, and tried again in vain');
    expect(losses.join()).toContain(word);
    expect(losses.join()).not.toMatch(/script:|ERR/);
    expect(store.connected).toBe(false);
    await server.command(...end);
    await waitFor(() => store.connected, 'it was of use again');
  });

  it.each([
    ['-publish', 'may not run publish'],
    ['-info', 'may not run info'],
    ['-set', 'may not run set'],
    ['resetkeys', 'may not use the keys of state.prefix'],
    ['resetchannels', 'may not use the channels of state.prefix'],
  ])('says which right is missing: a user with %s', async (less, words) => {
    const server = await serverOfOwn();
    await server.command('ACL', 'SETUSER', 'u', 'on', '>hushhush', '~*', '&*', '+@all', less);
    const { losses } = new Replica(server.url.replace('//', '//u:hushhush@'));
    await waitFor(() => losses.length > 0, 'it was refused');
    expect(losses[0]).toContain(words);
    expect(losses[0]).not.toContain('hush');
  });

  it('is noticed by the first command, and the others may not have noticed yet', async () => {
    const server = await serverOfOwn();
    const replica = await Replica.enrolled(server.url);
    await server.command('REPLICAOF', '127.0.0.1', '1');
    await expect(replica.claim()).rejects.toThrow('READONLY');
    expect(replica.store.connected).toBe(false);
    expect(replica.losses).toHaveLength(1);
    expect(replica.unseenMs).toBeGreaterThan(1000);
  });

  it('is another thing than an error of one request, but for those that keep leases', async () => {
    const server = await serverOfOwn();
    const { losses, store } = await Replica.enrolled(server.url);
    await server.command('SET', 'r:session:p', 'x');
    await server.command('LPUSH', 'r:sessions', 'x');
    const bounds = { keptMs: 1000, histories: 1, prefixesPerHistory: 1 };
    await expect(store.recall(['p'], 'id', bounds)).rejects.toThrow('WRONGTYPE');
    // The probe that follows it has been answered before this is.
    await store.renew([]);
    expect(losses).toEqual([]);
    await server.command('SET', 'r:pool:a', 'x');
    const lease = { id: 'l', pools: [{ pool: A, held: 1 }] };
    await expect(store.renew([lease])).rejects.toThrow('WRONGTYPE');
    expect(losses).toEqual(['WRONGTYPE']);
  });

  it('gives nothing out afterwards until all have told, however long they were silent', async () => {
    const server = await serverOfOwn();
    const [one, two] = await Promise.all([
      Replica.enrolled(server.url, 200),
      Replica.enrolled(server.url, 200),
    ]);
    expect((await one.claim()).granted).toBe(0);
    await server.command('REPLICAOF', '127.0.0.1', '1');
    await waitFor(() => one.losses.length > 0 && two.losses.length > 0, 'both noticed');
    const last = await server.lastIn('r:members');
    await waitFor(
      async () => (await server.nowMs()) > last + 400,
      'silent for long, and the lease has lapsed',
    );
    await server.command('REPLICAOF', 'NO', 'ONE');
    await Promise.all([one.connected(), two.connected()]);
    expect((await two.store.enrol([], [A])).heldBackMs).toBeGreaterThan(0);
    expect(await two.claim()).toMatchObject({ granted: null });
    await one.store.enrol([{ ...one.lease, pools: [{ pool: A, held: 1 }] }], [A]);
    await two.store.renew([]);
    expect(await two.claim()).toMatchObject({ granted: null, heldBackMs: 0 });
    await one.store.release(one.lease, 0);
    expect((await two.claim()).granted).toBe(0);
  });

  it('lets those who were cut off come before a newcomer, once nobody was heard of', async () => {
    const server = await serverOfOwn();
    await Replica.enrolled(server.url, 15_000);
    const soon = new Replica(server.url, 15_000, 60_000);
    await soon.connected();
    expect((await soon.store.enrol([], [A])).heldBackMs).toBe(0);
    await soon.store.close();
    const late = new Replica(server.url, 2, 60_000);
    await late.connected();
    expect((await late.store.enrol([], [A])).heldBackMs).toBeGreaterThan(50_000);
  });

  it('keeps a time of waiting that a roll call must not end', async () => {
    const server = await serverOfOwn();
    const [one, two] = await Promise.all([Replica.enrolled(server.url), Replica.enrolled(server.url)]);
    await server.command('SET', 'r:held-back', 'epoch', 'PX', '9000');
    await one.store.enrol([], [A]);
    await two.store.renew([]);
    expect((await one.claim()).heldBackMs).toBeGreaterThan(8000);
  });
});
