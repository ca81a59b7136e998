import { expect, it, onTestFinished } from 'vitest';
import { TestGateway } from '../support/gateway.js';
import { describeWithRedis, RedisServer } from '../support/redis-server.js';
import { ScriptedUpstream } from '../support/scripted-upstream.js';
import { gate, waitFor } from '../support/wait-for.js';

/** Two gateways in this process, with one Redis and one provider. */
async function pair(parts: { provider?: object; upstream?: object; model?: object; end?: object }) {
  const redis = await RedisServer.start();
  onTestFinished(() => redis.kill());
  const provider = await ScriptedUpstream.start();
  onTestFinished(() => provider.stop());
  const config = {
    state: { store: 'redis', url: redis.url },
    providers: [{ id: 'p', url: provider.url, ...parts.provider }],
    upstreams: [{ id: 'u', provider: 'p', model: 'real', ...parts.upstream }],
    models: [{ name: 'm', upstreams: ['u'], ...parts.model }],
    ...parts.end,
  };
  const [one, two] = await Promise.all([TestGateway.start({ config }), TestGateway.start({ config })]);
  onTestFinished(async () => {
    await Promise.all([one.close(), two.close()]);
  });
  const ask = (gateway: TestGateway, text = 'hi', history: object[] = []) =>
    gateway.send({ body: { model: 'm', messages: [...history, { role: 'user', content: text }] } }).end();
  return { one, two, ask, provider, redis };
}

describeWithRedis('what replicas share', () => {
  it('streaks and rests: what failed at one rests at the other, and a success ends it for both', async () => {
    const { ask, one, provider, two } = await pair({ upstream: { backoff: 'PT1M', probe_interval: 'PT0S' } });
    provider.next((_request, answer) => answer.send(503, '{}'));
    expect((await ask(one)).status).toBe(503);
    await waitFor(
      async () => (await two.metrics()).sum('llm_proxy_upstream_cooling_seconds', { upstream: 'u' }) > 0,
      'the other heard of it',
    );
    expect((await ask(two)).json['error']).toMatchObject({ code: 'all_upstreams_cooling' });
    expect(provider.chats).toHaveLength(1);
    await waitFor(async () => (await ask(two)).status === 200, 'the rest was over');
    await waitFor(
      async () => (await one.metrics()).sum('llm_proxy_upstream_fail_streak', { upstream: 'u' }) === 0,
      'the success was heard of',
    );
  });

  it('rests of keys: a key that one exhausted is left alone by the other', async () => {
    const { ask, one, provider, two } = await pair({ provider: { keys: ['key-aaaaaa', 'key-bbbbbb'] } });
    const used = () => provider.chats.map((request) => request.header('authorization')?.slice(-6));
    provider.always(async (request, answer) => {
      if (request.header('authorization') === 'Bearer key-aaaaaa')
        await answer.send(429, '{"error":{"code":"insufficient_quota"}}', {
          'content-type': 'application/json',
        });
      else await answer.json(200, { choices: [] });
    });
    expect((await ask(one)).status).toBe(200);
    expect(used()).toEqual(['aaaaaa', 'bbbbbb']);
    await waitFor(
      async () => (await two.metrics()).sum('llm_proxy_key_resting_seconds', { key: '#1', upstream: '' }) > 0,
      'the other heard of it',
    );
    for (let i = 0; i < 3; i++) expect((await ask(two)).status).toBe(200);
    expect(used().slice(2)).toEqual(['bbbbbb', 'bbbbbb', 'bbbbbb']);
  });

  it('quotas: both count together, also what a replica that starts later never saw', async () => {
    const quota = [{ requests: 4, per: 'P1D' }];
    const { ask, one, provider, redis, two } = await pair({ upstream: { quota } });
    const left = async (gateway: TestGateway) =>
      (await gateway.metrics()).sum('llm_proxy_quota_remaining', { scope: 'upstream' });
    expect((await ask(one)).status).toBe(200);
    expect((await ask(two)).status).toBe(200);
    await waitFor(async () => (await left(one)) === 2 && (await left(two)) === 2, 'both counted both');
    const third = await TestGateway.start({
      config: {
        state: { store: 'redis', url: redis.url },
        providers: [{ id: 'p', url: provider.url }],
        upstreams: [{ id: 'u', provider: 'p', model: 'real', quota }],
        models: [{ name: 'm', upstreams: ['u'] }],
      },
    });
    onTestFinished(() => third.close());
    await waitFor(async () => (await left(third)) === 2, 'the third knew of it');
    expect((await ask(third)).status).toBe(200);
    await waitFor(async () => (await left(one)) === 1, 'the first heard of it');
    expect((await ask(one)).status).toBe(200);
    await waitFor(async () => (await left(two)) === 0, 'nothing was left');
    expect((await ask(two)).json['error']).toMatchObject({ code: 'quota_exhausted' });
    expect(provider.chats).toHaveLength(4);
  });

  it('sessions: the next turn has the same id at whichever replica it comes', async () => {
    const { ask, one, provider, two } = await pair({ provider: { session_header: 'x-session' } });
    const turns = [];
    for (const [i, gateway] of [one, two, two, one].entries()) {
      expect((await ask(gateway, `question ${i}`, turns)).status).toBe(200);
      turns.push({ role: 'user', content: `question ${i}` }, { role: 'assistant', content: `answer ${i}` });
    }
    const ids = provider.chats.map((request) => request.header('x-session'));
    expect(ids[0]).toMatch(/^[0-9a-f]{64}$/);
    expect(new Set(ids).size).toBe(1);
    await ask(two, 'something else');
    expect(provider.last.header('x-session')).not.toBe(ids[0]);
  });

  it('limits of consumers: one place is one at all replicas, and who waits for it gets it wherever', async () => {
    const key = { id: 'k', value: 'key-of-red' };
    const { one, provider, two } = await pair({
      end: {
        consumers: [{ id: 'red', keys: [key], max_concurrency: 1 }],
        models: [
          { name: 'm', upstreams: ['u'] },
          { name: 'q', upstreams: ['u'], queue: { size: 5, wait: 'PT1M' } },
        ],
      },
    });
    const ask = (gateway: TestGateway, model: string) =>
      gateway.send({
        body: { model, messages: [{ role: 'user', content: 'hi' }] },
        headers: { authorization: 'Bearer key-of-red' },
      });
    const held = gate();
    provider.next(async (_request, answer) => {
      await held.opened;
      await answer.json(200, { choices: [] });
    });
    const first = ask(one, 'm');
    await waitFor(() => provider.chats.length === 1, 'it is at the provider');
    const second = await ask(two, 'm').end();
    expect([second.status, second.header('retry-after')]).toEqual([429, '1']);
    expect(second.json['error']).toMatchObject({ code: 'consumer_busy' });
    const waiting = ask(two, 'q');
    await waitFor(async () => (await two.metrics()).sum('llm_proxy_queue_depth', {}) === 1, 'it waits');
    expect(provider.chats).toHaveLength(1);
    held.open();
    expect((await first.end()).status).toBe(200);
    expect((await waiting.end()).status).toBe(200);
    expect(provider.mostAtOnce).toBe(1);
    await waitFor(async () => (await ask(one, 'm').end()).status === 200, 'the place is free again');
  });

  it('slots of a group that a probe holds: the replica that sends it shows them, and why it is busy', async () => {
    const { ask, one, provider, two } = await pair({
      end: {
        slot_groups: { g: 1 },
        upstreams: [
          {
            id: 'u',
            provider: 'p',
            model: 'real',
            backoff: 'PT1M',
            probe_interval: 'PT0.05S',
            slot_group: 'g',
          },
          { id: 'v', provider: 'p', model: 'real', slot_group: 'g' },
        ],
        models: [
          { name: 'm', upstreams: ['u'] },
          { name: 'other', upstreams: ['v'] },
        ],
      },
    });
    const held = gate();
    provider.onProbe = async (_request, answer) => {
      await held.opened;
      await answer.json(200, { choices: [] });
    };
    const inflight = async () => {
      const [a, b] = await Promise.all([one.metrics(), two.metrics()]);
      return [a, b]
        .map((text) => text.sum('llm_proxy_slot_group_inflight', { group: 'g' }))
        .toSorted((x, y) => x - y);
    };
    provider.next((_request, answer) => answer.send(503, '{}'));
    expect((await ask(one)).status).toBe(503);
    await waitFor(() => provider.probes.length > 0, 'a probe runs');
    expect(await inflight()).toEqual([0, 1]);
    const prober =
      (await one.metrics()).sum('llm_proxy_slot_group_inflight', { group: 'g' }) === 1 ? one : two;
    const body = { model: 'other', messages: [{ role: 'user', content: 'hi' }] };
    expect((await prober.send({ body }).end()).status).toBe(503);
    await prober.logged('g=1/1');
    held.open();
    await waitFor(async () => (await inflight()).every((count) => count === 0), 'the probe gave it back');
  });

  it('affinity: a conversation goes on where another replica had it served', async () => {
    const { ask, one, two } = await pair({
      upstream: { max_concurrency: 1 },
      end: {
        upstreams: [
          { id: 'u', provider: 'p', model: 'real', max_concurrency: 1 },
          { id: 'v', provider: 'p', model: 'real' },
        ],
        models: [{ name: 'm', upstreams: ['v', 'u'], affinity: 'session', order: 'least_busy' }],
      },
    });
    const first = await ask(one, 'question');
    const served = first.header('x-llm-proxy-upstream');
    const history = [
      { role: 'user', content: 'question' },
      { role: 'assistant', content: 'hello' },
    ];
    expect(first.header('x-llm-proxy-affinity')).toBe('new');
    await waitFor(async () => {
      const next = await ask(two, 'next', history);
      return next.header('x-llm-proxy-affinity') === 'hit' && next.header('x-llm-proxy-upstream') === served;
    }, 'the other replica knew where it was served');
  });
});
