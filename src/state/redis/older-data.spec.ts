import { expect, it, onTestFinished } from 'vitest';
import { RedisProxy } from '../../../test/support/redis-proxy.js';
import { describeWithRedis, RedisServer } from '../../../test/support/redis-server.js';
import { withSnapshot } from '../../../test/support/redis-snapshot.js';
import { waitFor } from '../../../test/support/wait-for.js';
import type { Pool, PooledLease } from '../shared-types.js';
import { redisInfoOf } from './redis-info.js';
import { RedisStore } from './redis-store.js';

const A: Pool = { name: 'a', limit: 1 };
const LEASE_MS = 15_000;

class Replica {
  readonly store: RedisStore;
  readonly warnings: string[] = [];
  connections = 0;

  private constructor(url: string, newcomerMs: number) {
    this.store = new RedisStore({ url, prefix: 'o:', timeoutMs: 1000, leaseMs: LEASE_MS, newcomerMs });
    this.store.open({
      connected: () => this.connections++,
      lost: () => {},
      happened: () => {},
      warned: (trouble) => this.warnings.push(trouble),
    });
    onTestFinished(() => this.store.close());
  }

  static async connected(url: string, newcomerMs = 0): Promise<Replica> {
    const replica = new Replica(url, newcomerMs);
    await waitFor(() => replica.store.connected, 'it was connected');
    return replica;
  }

  static async enrolled(url: string): Promise<Replica> {
    const replica = await Replica.connected(url);
    await replica.store.enrol([], [A]);
    return replica;
  }

  get lease(): PooledLease {
    return { id: `${this.store.replica}:1`, pools: [{ pool: A, held: 0 }] };
  }

  async claim() {
    return await this.store.claim(this.lease.id, [{ pools: this.lease.pools, rest: null }], []);
  }

  /** Resolves once it is connected again after what `act` did. */
  async again(act: () => Promise<unknown> | void): Promise<void> {
    const { connections } = this;
    await act();
    await waitFor(() => this.connections > connections && this.store.connected, 'it was connected again');
  }
}

async function started(...args: readonly string[]): Promise<RedisServer> {
  const server = await RedisServer.start(['--repl-diskless-sync-delay', '0', ...args]);
  onTestFinished(() => server.kill());
  return server;
}

async function proxyTo(port: number): Promise<RedisProxy> {
  const proxy = await RedisProxy.start(port);
  onTestFinished(() => proxy.close());
  return proxy;
}

describeWithRedis('a Redis with older data', () => {
  it('gives nothing out for the time of a lease: from a snapshot of before a replica came', async () => {
    const { comeBack, server, take } = await withSnapshot();
    const one = await Replica.enrolled(server.url);
    await take();
    const two = await Replica.enrolled(server.url);
    expect((await two.claim()).granted).toBe(0);
    await Promise.all([one.again(comeBack), two.again(() => {})]);
    expect(Number(await server.command('EXISTS', 'o:epoch'))).toBe(1);
    expect((await one.store.enrol([], [A])).heldBackMs).toBeGreaterThan(LEASE_MS - 2000);
    expect(await one.claim()).toMatchObject({ granted: null });
    // Whoever has not told yet gets nothing, and counts as held once it has.
    await expect(two.claim()).rejects.toThrow('its content was lost');
    await two.again(() => {});
    const told = await two.store.enrol([two.lease], [A]);
    expect(told.heldBackMs).toBeGreaterThan(LEASE_MS - 2000);
    await server.command('DEL', 'o:held-back');
    expect(await one.claim()).toMatchObject({ granted: null, heldBackMs: 0 });
    await two.store.release(two.lease, 0);
    expect((await one.claim()).granted).toBe(0);
  });

  it('lets those who knew more come before a newcomer', async () => {
    const { comeBack, server, take } = await withSnapshot();
    const one = await Replica.enrolled(server.url);
    await take();
    await one.again(comeBack);
    const newcomer = await Replica.connected(server.url, 3000);
    expect((await newcomer.store.enrol([], [A])).heldBackMs).toBeGreaterThan(1000);
    expect((await one.store.enrol([], [A])).heldBackMs).toBeGreaterThan(LEASE_MS - 2000);
  });

  it('is seen in a replica of Redis that took over', async () => {
    const [first, second] = await Promise.all([started(), started()]);
    const proxy = await proxyTo(first.port);
    const one = await Replica.enrolled(proxy.url);
    await second.command('REPLICAOF', '127.0.0.1', String(first.port));
    await waitFor(async () => Number(await second.command('EXISTS', 'o:epoch')) === 1, 'it has the data');
    await second.command('REPLICAOF', 'NO', 'ONE');
    await one.again(() => proxy.lead(second.port));
    expect((await one.store.enrol([], [A])).heldBackMs).toBeGreaterThan(LEASE_MS - 2000);
  });

  it('is seen where the same process took the data of another one', async () => {
    const [first, other] = await Promise.all([started(), started()]);
    const one = await Replica.enrolled(first.url);
    const copied = await first.command('GET', 'o:epoch');
    const origin = await first.command('GET', 'o:origin');
    await other.command('SET', 'o:epoch', String(copied), 'PX', '60000');
    await other.command('SET', 'o:origin', String(origin), 'PX', '60000');
    await other.command('SET', 'o:mark', '1');
    await one.again(async () => {
      await first.command('REPLICAOF', '127.0.0.1', String(other.port));
      await waitFor(async () => Number(await first.command('EXISTS', 'o:mark')) === 1, 'it has the data');
      await first.command('REPLICAOF', 'NO', 'ONE');
      await first.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
    });
    expect((await one.store.enrol([], [A])).heldBackMs).toBeGreaterThan(LEASE_MS - 2000);
  });

  it('is another thing than a connection that broke, or a master that was read-only for a while', async () => {
    const server = await started();
    const proxy = await proxyTo(server.port);
    const one = await Replica.enrolled(proxy.url);
    await one.again(() => proxy.break());
    expect((await one.store.enrol([], [A])).heldBackMs).toBe(0);
    for (let n = 0; n < 2; n++) {
      await one.again(async () => {
        await server.command('REPLICAOF', '127.0.0.1', '1');
        await server.command('REPLICAOF', 'NO', 'ONE');
        proxy.break();
      });
      expect((await one.store.enrol([], [A])).heldBackMs).toBe(0);
    }
    expect((await one.claim()).granted).toBe(0);
    expect(one.warnings).toEqual([]);
  });

  it('is assumed after each break where nobody can tell, once for all', async () => {
    const server = await started();
    const proxy = await proxyTo(server.port);
    proxy.hideIdentity();
    const [one, two] = [await Replica.enrolled(proxy.url), await Replica.enrolled(proxy.url)];
    expect((await two.claim()).granted).toBe(0);
    await two.store.release(two.lease, 0);
    await Promise.all([one.again(() => proxy.break()), two.again(() => {})]);
    expect((await one.store.enrol([], [A])).heldBackMs).toBeGreaterThan(LEASE_MS - 2000);
    const epoch = await server.command('GET', 'o:epoch');
    expect((await two.store.enrol([], [A])).heldBackMs).toBeGreaterThan(LEASE_MS - 2000);
    expect(await server.command('GET', 'o:epoch')).toBe(epoch);
    await server.command('DEL', 'o:held-back');
    expect((await two.claim()).granted).toBe(0);
    const newcomer = await Replica.connected(proxy.url, 3000);
    expect((await newcomer.store.enrol([], [A])).heldBackMs).toBeGreaterThan(1000);
    expect(newcomer.warnings).toEqual([expect.stringContaining('run_id')]);
  });

  it('is not what eviction leaves behind, so a policy that evicts is told', async () => {
    const server = await started('--maxmemory-policy', 'allkeys-lru');
    const one = await Replica.enrolled(server.url);
    expect(one.warnings).toEqual([expect.stringContaining('allkeys-lru')]);
  });
});

it('what INFO tells is read by its names, and what it does not tell is nothing', () => {
  const text =
    '# Server\r\nrun_id:ab\r\ncluster_enabled:1\r\nmaxmemory_policy:noeviction\r\nmaster_replid:cd\r\n';
  expect(redisInfoOf(`${text}master_replid2:0000\r\n`)).toEqual({
    clustered: true,
    identity: { run: 'ab', history: 'cd', before: '' },
    evicts: null,
  });
  expect(redisInfoOf('')).toEqual({
    clustered: false,
    identity: { run: '', history: '', before: '' },
    evicts: null,
  });
});

describeWithRedis('what a replica tells', () => {
  it('undoes nothing of what it told later, where it comes late', async () => {
    const server = await started();
    const proxy = await proxyTo(server.port);
    proxy.listenFor('o:tellings');
    const one = await Replica.enrolled(proxy.url);
    await one.store.enrol([], [A]);
    const two = await Replica.enrolled(server.url);
    expect((await one.claim()).granted).toBe(0);
    expect(proxy.heard.length).toBeGreaterThan(0);
    for (const told of proxy.heard) expect(await proxy.repeat(told)).toContain('OVERTAKEN');
    expect((await two.claim()).granted).toBeNull();
  });

  it('holds the others back once for each that comes late, not for each time it tells', async () => {
    const server = await started();
    const proxy = await proxyTo(server.port);
    const one = await Replica.enrolled(server.url);
    const late = await Replica.enrolled(proxy.url);
    await server.command('FLUSHALL');
    await one.store.enrol([], [A]);
    proxy.listenFor('o:tellings');
    const { heldBackMs } = await late.store.enrol([], [A]);
    expect(heldBackMs).toBeGreaterThan(LEASE_MS - 2000);
    await server.command('PEXPIRE', 'o:held-back', '5000');
    // As if it had not heard the answer.
    const again = String(proxy.heard.at(-1)).replace(/\$1\r\n2\r\n(\$\d\r\n\d+\r\n)$/, '$$1\r\n3\r\n$1');
    expect(again).not.toBe(String(proxy.heard.at(-1)));
    expect(await proxy.repeat(Buffer.from(again))).not.toContain('OVERTAKEN');
    expect(Number(await server.command('PTTL', 'o:held-back'))).toBeLessThanOrEqual(5000);
  });
});
