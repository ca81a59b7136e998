import { describe, expect, it } from 'vitest';
import { completion } from '../support/answers.js';
import { holdAnswers, queued, say } from '../support/held-answers.js';
import { stage, type Stage } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';

/** Two upstreams on one machine, each with a model of its own. */
function machine(group: unknown = 1, model: object = {}, upstream: object = {}): Promise<Stage> {
  return stage({
    upstreams: 2,
    upstream: { slot_group: 'gpu0', ...upstream },
    file: () => ({
      slot_groups: { gpu0: group },
      models: [
        { name: 'm', upstreams: ['a', 'b'], ...model },
        { name: 'ma', upstreams: ['a'], ...model },
        { name: 'mb', upstreams: ['b'], ...model },
      ],
    }),
  });
}

describe('a slot group', () => {
  it('is one limit for all its upstreams, and says so', async () => {
    const set = await machine();
    const held = holdAnswers(set.a);
    const first = set.chat({ model: 'ma' });
    await waitFor(() => held.order.length === 1, 'a runs');
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_slot_group_inflight', { group: 'gpu0' })).toBe(1);
    expect(metrics.sum('llm_proxy_slot_group_limit', { group: 'gpu0' })).toBe(1);
    const busy = await set.chat({ model: 'mb' }).end();
    expect(busy.json).toMatchObject({ error: { code: 'all_upstreams_busy' } });
    await set.gateway.logged('503 all upstreams busy (b=0/∞ gpu0=1/1)');
    held.release();
    await first.end();
    await waitFor(async () => (await set.gateway.inflight('a')) === 0, 'a is free');
    expect((await set.chat({ model: 'mb' }).end()).status).toBe(200);
  });

  it('hands its slot to whoever waits, across models', async () => {
    const set = await machine(1, { queue: {} });
    const [a, b] = [holdAnswers(set.a), holdAnswers(set.b)];
    const first = set.chat({ model: 'ma', ...say('1') });
    await waitFor(() => a.order.length === 1, 'a runs');
    const waiting = [];
    for (const [i, model] of ['mb', 'ma', 'mb'].entries()) {
      waiting.push(set.chat({ model, ...say(`${i + 2}`) }));
      await waitFor(
        async () => (await set.gateway.metrics()).sum('llm_proxy_queue_depth') === i + 1,
        'it waits',
      );
    }
    await a.next();
    await b.next();
    await a.next();
    await b.next();
    for (const answer of [first, ...waiting]) expect((await answer.end()).status).toBe(200);
    expect([a.order, b.order]).toEqual([
      ['1', '3'],
      ['2', '4'],
    ]);
  });

  it('is overtaken by no newcomer, also of a model without queue', async () => {
    const set = await stage({
      upstreams: 1,
      upstream: { max_concurrency: 1 },
      file: () => ({
        models: [
          { name: 'm', upstreams: ['a'], queue: {} },
          { name: 'none', upstreams: ['a'] },
        ],
      }),
    });
    const held = holdAnswers(set.a);
    const first = set.chat(say('first'));
    await waitFor(() => held.order.length === 1, 'it runs');
    const second = set.chat(say('second'));
    await queued(set, 1);
    await held.next();
    const refused = await set.chat({ model: 'none' }).end();
    expect(refused.json).toMatchObject({
      error: { message: 'all upstreams busy', code: 'all_upstreams_busy' },
    });
    held.release();
    for (const answer of [first, second]) expect((await answer.end()).status).toBe(200);
  });

  it('pauses after each exchange, for its other upstreams too, and a failover inside waits it out', async () => {
    const set = await machine({ limit: 1, settle: 'PT0.15S' });
    let over = 0;
    set.a.next(async (_request, answer) => {
      await answer.error(500);
      over = performance.now();
    });
    let began = 0;
    set.b.next(async (_request, answer) => {
      began = performance.now();
      await answer.json(200, completion());
    });
    const answer = await set.chat().end();
    expect([answer.status, answer.header('x-llm-proxy-trail')]).toEqual([200, 'a=500,b=200']);
    expect(began - over).toBeGreaterThan(120);
    // Its pause counts as taken, but not in flight.
    expect((await set.chat({ model: 'ma' }).end()).json).toMatchObject({
      error: { code: 'all_upstreams_busy' },
    });
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_slot_group_inflight', { group: 'gpu0' })).toBe(0);
    expect(metrics.sum('llm_proxy_upstream_inflight')).toBe(0);
  });

  it('ends the wait of a client that leaves during the pause', async () => {
    const set = await machine({ limit: 1, settle: 'PT30S' });
    set.a.next((_request, answer) => answer.error(500));
    const answer = set.chat();
    await set.gateway.logged('returned 500 → failover');
    await set.gateway.logged('waits for a slot');
    answer.leave();
    await set.gateway.logged('client left');
    expect(set.b.requests).toEqual([]);
  });

  it('is asked for its slot by probes, which let the running model alone', async () => {
    const set = await machine(1, {}, { backoff: { base: 'PT30S', cap: 'PT1M' }, probe_interval: 'PT0.03S' });
    set.a.next((_request, answer) => answer.error(503));
    const held = holdAnswers(set.b);
    set.a.onProbe = (_request, answer) => answer.error(503);
    expect((await set.chat({ model: 'ma' }).end()).status).toBe(503);
    const running = set.chat({ model: 'mb' });
    await waitFor(() => held.order.length === 1, 'b runs');
    const before = set.a.probes.length;
    const since = performance.now();
    await waitFor(() => performance.now() - since > 120, 'several intervals passed');
    expect(set.a.probes.length).toBe(before);
    held.release();
    await running.end();
    await waitFor(() => set.a.probes.length > before, 'a probe came as soon as the group was free');
  });
});
