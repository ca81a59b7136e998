import { expect, it } from 'vitest';
import { describeWithRedis } from '../support/redis-server.js';
import { Fleet, hold } from '../support/replicas.js';
import { waitFor } from '../support/wait-for.js';

describeWithRedis('replicas whose Redis answers and refuses', () => {
  it('reject: as if it was gone, with the reason in the log, and back by itself', async () => {
    const fleet = await Fleet.start({ count: 1, onError: 'reject' });
    const { redis } = fleet;
    const held = hold(fleet.provider);
    const running = fleet.ask(0);
    await running.saw('begun');
    await redis.command('REPLICAOF', '127.0.0.1', '1');
    // Nobody asks for anything.
    await waitFor(() => fleet.logged(0, 'state: redis is gone (READONLY'), 'it noticed');
    expect(await fleet.metric(0, 'llm_proxy_state_degraded')).toBe(1);
    const refused = await fleet.ask(0, 'now').end();
    expect(refused.status).toBe(503);
    expect(refused.json['error']).toMatchObject({ code: 'state_unavailable' });
    expect((await fleet.replicas[0]!.get('/readyz')).status).toBe(503);
    held.open();
    await running.end();
    await redis.command('REPLICAOF', 'NO', 'ONE');
    await waitFor(async () => (await fleet.replicas[0]!.get('/readyz')).status === 200, 'it is ready again');
    expect(await fleet.metric(0, 'llm_proxy_state_degraded')).toBe(0);
    await waitFor(() => fleet.logged(0, 'state: redis is back'), 'the log says so');
    // What was given back meanwhile is free.
    expect((await fleet.ask(0, 'now').end()).status).toBe(200);
    const told = fleet.replicas[0]?.lines.filter(({ msg }) => msg.includes('state: redis'));
    expect(told).toHaveLength(2);
  });

  it('local: each lives on its share, and nothing overlaps when it is well again', async () => {
    const fleet = await Fleet.start({ count: 2, upstream: { max_concurrency: 3 } });
    const { provider, redis } = fleet;
    await redis.command('ACL', 'SETUSER', 'default', '-@scripting');
    await waitFor(
      () => [0, 1].every((replica) => fleet.logged(replica, 'state: redis is gone (NOPERM')),
      'both noticed',
    );
    const gates = [hold(provider), hold(provider)];
    const running = [fleet.ask(0), fleet.ask(1)];
    await Promise.all(running.map((one) => one.saw('begun')));
    expect((await fleet.ask(0, 'now').end()).status).toBe(503);
    await redis.command('ACL', 'SETUSER', 'default', '+@all');
    await waitFor(
      () => [0, 1].every((replica) => fleet.logged(replica, 'state: redis is back')),
      'both are back',
    );
    const more = Array.from({ length: 6 }, (_, i) => fleet.ask(i % 2));
    for (const gate of gates) gate.open();
    await Promise.all([...running, ...more].map((one) => one.end()));
    expect(provider.mostAtOnce).toBeLessThanOrEqual(3);
  });
});
