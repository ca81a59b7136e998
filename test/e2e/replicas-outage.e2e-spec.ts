import { expect, it } from 'vitest';
import { describeWithRedis } from '../support/redis-server.js';
import { Fleet, hold } from '../support/replicas.js';
import { waitFor } from '../support/wait-for.js';

describeWithRedis('replicas without their Redis', () => {
  it(
    'local: a slot stays with who held it, others count it as busy, and nothing overlaps when an empty Redis comes back',
    { timeout: 90_000 },
    async () => {
      const fleet = await Fleet.start({ count: 2 });
      const { provider, redis } = fleet;
      const first = hold(provider);
      const running = fleet.ask(0);
      await running.saw('begun');

      await redis.kill();
      await waitFor(
        () => [0, 1].every((replica) => fleet.logged(replica, 'state: redis is gone')),
        'both noticed',
      );
      expect(await fleet.metric(1, 'llm_proxy_state_degraded')).toBe(1);
      expect((await fleet.ask(1, 'now').end()).json['error']).toMatchObject({ code: 'all_upstreams_busy' });
      first.open();
      await running.saw('ended');
      await running.end();
      // For the whole outage, though nothing runs.
      expect((await fleet.ask(1, 'now').end()).status).toBe(503);
      expect((await fleet.ask(0, 'now').end()).status).toBe(200);
      const second = hold(provider);
      const still = fleet.ask(0);
      await still.saw('begun');

      await redis.up();
      await waitFor(
        () => [0, 1].every((replica) => fleet.logged(replica, 'state: redis is back')),
        'both are back',
      );
      expect(await fleet.metric(0, 'llm_proxy_state_degraded')).toBe(0);
      // Nothing that has a limit is given out for the time of a lease; who waits gets it then.
      const waiting = fleet.ask(1);
      second.open();
      await still.end();
      expect((await fleet.ask(0, 'now').end()).status).toBe(503);
      await waitFor(() => waiting.status !== 0, 'the one who waited was served', 40_000);
      expect((await waiting.end()).status).toBe(200);
      expect(provider.mostAtOnce).toBe(1);
      for (const replica of [0, 1]) {
        const told = fleet.replicas[replica]?.lines.filter(({ msg }) => msg.includes('state: redis'));
        expect(told).toHaveLength(2);
      }
    },
  );

  it('reject: 503 for all, not ready, and back by itself', async () => {
    const fleet = await Fleet.start({ count: 1, onError: 'reject', upstream: { max_concurrency: null } });
    expect((await fleet.ask(0, 'now').end()).status).toBe(200);
    await fleet.redis.kill();
    await waitFor(() => fleet.logged(0, 'state: redis is gone'), 'it noticed');
    const refused = await fleet.ask(0, 'now').end();
    expect(refused.status).toBe(503);
    expect(refused.header('retry-after')).toBe('1');
    expect(refused.json['error']).toMatchObject({ code: 'state_unavailable', type: 'server_error' });
    expect((await fleet.replicas[0]!.get('/readyz')).status).toBe(503);
    expect((await fleet.replicas[0]!.get('/healthz')).status).toBe(200);
    expect(fleet.provider.chats).toHaveLength(1);
    await fleet.redis.up();
    await waitFor(async () => (await fleet.replicas[0]!.get('/readyz')).status === 200, 'it is ready again');
    expect((await fleet.ask(0, 'now').end()).status).toBe(200);
  });

  it('reject: who waits is told so at once', async () => {
    const fleet = await Fleet.start({ count: 1, onError: 'reject' });
    const held = hold(fleet.provider);
    const running = fleet.ask(0);
    await running.saw('begun');
    const waiting = fleet.ask(0);
    await waitFor(async () => (await fleet.metric(0, 'llm_proxy_queue_depth')) === 1, 'it waits');
    await fleet.redis.kill();
    expect((await waiting.end()).json['error']).toMatchObject({ code: 'state_unavailable' });
    held.open();
    // What runs goes on.
    await running.saw('ended');
  });
});
