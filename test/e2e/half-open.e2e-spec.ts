import { describe, expect, it } from 'vitest';
import { completion } from '../support/answers.js';
import type { RawAnswer } from '../support/raw-client.js';
import type { Script } from '../support/scripted-upstream.js';
import { stage, type Stage } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

const fail: Script = (_request, answer) => answer.error(503);
const refuse: Script = (_request, answer) => answer.error(400);
const halfOpen = { recovery: 'half_open', backoff: { base: 'PT0.3S', cap: 'PT1H' } };
/** So long that no test sees its second half. */
const long = { ...halfOpen, backoff: { base: 'PT10M', cap: 'PT1H' } };

async function gauge(set: Stage, name: string, upstream = 'a'): Promise<number> {
  return (await set.gateway.metrics()).sum(`llm_proxy_upstream_${name}`, { upstream });
}

/** Lets it fail; gives the time of the failure. */
async function makeRest(set: Stage, script: Script = fail): Promise<number> {
  let at = 0;
  set.a.next((request, answer) => {
    at = performance.now();
    return script(request, answer);
  });
  expect((await set.chat().end()).status).toBe(503);
  return at;
}

/** Asks until an upstream was asked. "busy" is what a request gets that comes in the very moment in which a rest ends. */
async function trial(ask: () => RawAnswer): Promise<RawAnswer> {
  let answer = await ask().end();
  await waitFor(async () => {
    if (!/all_upstreams_(cooling|busy)/.test(answer.text)) return true;
    answer = await ask().end();
    return false;
  }, 'a trial was let through');
  return answer;
}

describe('half-open recovery', () => {
  it('is silent in the first half, then a request is the trial, and its success ends the rest', async () => {
    const set = await stage({
      upstream: { recovery: 'half_open', backoff: { base: 'PT0.6S', cap: 'PT1H' } },
    });
    let triedAt = 0;
    const failedAt = await makeRest(set);
    set.a.next(async (_request, answer) => {
      triedAt = performance.now();
      await answer.json(200, completion());
    });
    expect((await trial(() => set.chat())).status).toBe(200);
    expect(triedAt - failedAt).toBeGreaterThanOrEqual(299);
    expect([await gauge(set, 'fail_streak'), await gauge(set, 'cooling_seconds')]).toEqual([0, 0]);
    expect((await set.chat().end()).status).toBe(200);
    expect([set.a.chats.length, set.a.probes.length]).toEqual([3, 0]);
    // Where the machine was so slow that the rest ended by itself, there was no trial to log.
    if (triedAt - failedAt < 590) {
      const lines = set.gateway.messages.join('\n');
      expect(lines).toContain('active[a]=1/∞ trial');
      expect(lines).toContain('chat model=m upstream=a trial ok, back in the pool');
    }
  });

  it('opens a longer rest where the trial fails', async () => {
    const set = await stage({ upstream: { ...halfOpen, backoff: { base: 'PT3S', cap: 'PT1H' } } });
    await makeRest(set);
    set.a.next(fail);
    expect((await trial(() => set.chat())).json).toMatchObject({
      error: { code: 'all_upstreams_failed', attempts: [{ upstream: 'a', result: '5xx', status: 503 }] },
    });
    expect(await gauge(set, 'fail_streak')).toBe(2);
    expect(await gauge(set, 'cooling_seconds')).toBeGreaterThan(5);
    const lines = set.gateway.messages.join('\n');
    expect(lines).toContain('upstream=a trial failed, stays in backoff');
    expect(lines).toContain('upstream=a returned 503 → failover (backoff: rest PT6S)');
    // The new rest is silent in its first half.
    expect((await set.chat().end()).json).toMatchObject({ error: { code: 'all_upstreams_cooling' } });
    expect(set.a.chats).toHaveLength(2);
  });

  it('a trial that fails before its first byte costs the client nothing', async () => {
    const set = await stage({
      upstreams: 2,
      upstream: { ...halfOpen, backoff: { base: 'PT2S', cap: 'PT1H' } },
      model: { upstreams: ['b', 'a'] },
    });
    set.b.next(fail, fail);
    set.a.next(fail);
    expect((await set.chat().end()).status).toBe(503);
    // b failed first, so where a is in its second half, b is too: a request before that would find only one of the two.
    await waitFor(
      async () => (await gauge(set, 'cooling_seconds', 'a')) < 0.99,
      'both are in their second half',
    );
    const answer = await set.chat().end();
    expect([answer.status, answer.header('x-llm-proxy-trail')]).toEqual([200, 'b=503,a=200']);
    expect(await gauge(set, 'fail_streak', 'a')).toBe(0);
  });

  it('stands behind what is healthy, whatever the order of the file', async () => {
    const set = await stage({
      upstreams: 2,
      upstream: (i) => (i === 0 ? { ...long, backoff: { base: 'PT2S', cap: 'PT1H' } } : {}),
      file: () => ({
        models: [
          { name: 'm', upstreams: ['a', 'b'] },
          { name: 'only', upstreams: ['a'] },
        ],
      }),
    });
    set.a.next(fail);
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    // What the provider refuses decides nothing: now the second half has begun, and it still rests.
    set.a.next(refuse);
    expect((await trial(() => set.chat({ model: 'only' }))).status).toBe(400);
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    expect(set.a.chats).toHaveLength(2);
  });

  it('goes before what is healthy in a worse tier, and on to it where it fails', async () => {
    const set = await stage({
      upstreams: 2,
      upstream: (i) => (i === 0 ? { ...halfOpen, backoff: { base: 'PT1S', cap: 'PT1H' } } : {}),
      model: {
        upstreams: [
          { upstream: 'a', tier: 1 },
          { upstream: 'b', tier: 2 },
        ],
      },
    });
    set.a.always(fail);
    let answer = await set.chat().end();
    expect(answer.header('x-llm-proxy-trail')).toBe('a=503,b=200');
    await waitFor(async () => {
      answer = await set.chat().end();
      expect([answer.status, answer.header('x-llm-proxy-upstream')]).toEqual([200, 'b']);
      return set.a.chats.length > 1;
    }, 'a was tried');
    expect(answer.header('x-llm-proxy-trail')).toBe('a=503,b=200');
    expect(await gauge(set, 'fail_streak')).toBe(2);
  });

  it('takes the place of what is healthy but full', async () => {
    const set = await stage({
      upstreams: 2,
      upstream: (i) => (i === 0 ? halfOpen : { max_concurrency: 1 }),
    });
    set.a.next(fail);
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    const held = gate();
    set.b.next(async (_request, answer) => {
      await held.opened;
      await answer.json(200, completion());
    });
    const holder = set.chat();
    await set.b.chat(1);
    let answer = await set.chat().end();
    await waitFor(async () => {
      if (answer.status === 200) return true;
      expect(answer.json).toMatchObject({ error: { code: 'all_upstreams_busy' } });
      answer = await set.chat().end();
      return false;
    }, 'a was tried');
    expect(answer.header('x-llm-proxy-upstream')).toBe('a');
    held.open();
    await holder.end();
  });

  it.each([
    [null, 2],
    [5, 1],
  ])('with a limit of %s lets %d try at once, and says how long to wait', async (limit, places) => {
    const set = await stage({
      upstream: { ...halfOpen, backoff: { base: 'PT2.4S', cap: 'PT1H' }, max_concurrency: limit },
    });
    await makeRest(set);
    const held = gate();
    set.a.always(async (_request, answer) => {
      await held.opened;
      await answer.error(400);
    });
    const trials: RawAnswer[] = [];
    await waitFor(async () => {
      const answer = set.chat();
      const received = set.a.chats.length;
      await waitFor(() => answer.ending !== null || set.a.chats.length > received, 'something came of it');
      if (set.a.chats.length > received) trials.push(answer);
      return trials.length === places;
    }, `${places} tried`);
    const next = await set.chat().end();
    expect(next.json).toMatchObject({
      error: { code: 'all_upstreams_cooling', message: 'all upstreams cooling, retry in 1s' },
    });
    held.open();
    for (const answer of trials) expect((await answer.end()).status).toBe(400);
    // They decided nothing, and gave their places back.
    expect(await gauge(set, 'fail_streak')).toBe(1);
    expect((await set.chat().end()).status).toBe(400);
    expect(set.gateway.messages.join('\n')).toContain('trial decided nothing');
  });

  it('gives the place of a client that left to the next', async () => {
    const set = await stage({
      upstream: { ...halfOpen, backoff: { base: 'PT2.4S', cap: 'PT1H' }, max_concurrency: 1 },
    });
    await makeRest(set);
    set.a.next(() => {});
    let leaving = set.chat();
    await waitFor(async () => {
      if (set.a.chats.length > 1) return true;
      if (leaving.ending !== null) leaving = set.chat();
      return false;
    }, 'a trial was under way');
    leaving.leave();
    await set.a.chats[1]?.closed;
    await waitFor(async () => (await gauge(set, 'inflight')) === 0, 'the slot was free');
    expect(await gauge(set, 'fail_streak')).toBe(1);
    expect((await set.chat().end()).status).toBe(200);
    expect(await gauge(set, 'fail_streak')).toBe(0);
  });

  it("tries nothing before the provider's own Retry-After has passed", async () => {
    const set = await stage({ upstream: halfOpen });
    let triedAt = 0;
    const failedAt = await makeRest(set, (_r, answer) => answer.error(503, { 'retry-after-ms': '700' }));
    set.a.next(async (_request, answer) => {
      triedAt = performance.now();
      await answer.json(200, completion());
    });
    await trial(() => set.chat());
    expect(triedAt - failedAt).toBeGreaterThanOrEqual(699);
  });

  it('tells clients when the next may try, not when the rest ends', async () => {
    const set = await stage({ upstream: long });
    set.a.next(fail);
    const first = await set.chat().end();
    expect([first.header('retry-after'), first.header('retry-after-ms')]).toEqual(['300', '60000']);
    const second = await set.chat().end();
    expect(second.json).toMatchObject({ error: { message: 'all upstreams cooling, retry in 300s' } });
    expect(await gauge(set, 'cooling_seconds')).toBeGreaterThan(590);
  });

  it('with both, probes go on from the beginning and end the rest too', async () => {
    const set = await stage({ upstream: { ...long, recovery: 'both', probe_interval: 'PT0.05S' } });
    await makeRest(set);
    await set.gateway.logged('probe upstream=a ok, back in the pool');
    expect((await set.chat().end()).status).toBe(200);
  });

  it('with timer, neither probes nor trials: the rest ends by time', async () => {
    const set = await stage({
      upstream: { recovery: 'timer', backoff: { base: 'PT0.4S', cap: 'PT1H' }, probe_interval: 'PT0.05S' },
    });
    let backAt = 0;
    const failedAt = await makeRest(set);
    set.a.next(async (_request, answer) => {
      backAt = performance.now();
      await answer.json(200, completion());
    });
    await trial(() => set.chat());
    expect(backAt - failedAt).toBeGreaterThanOrEqual(399);
    expect(set.a.probes).toEqual([]);
  });

  it('counts trials together for upstreams that share a counter', async () => {
    const set = await stage({
      file: ([a]) => ({
        providers: [
          { id: 'p', url: a?.url, ...halfOpen, backoff: { base: 'PT2.4S', cap: 'PT1H' }, max_concurrency: 1 },
        ],
        upstreams: [
          { id: 'a', provider: 'p', model: 'x' },
          { id: 'b', provider: 'p', model: 'y' },
        ],
        models: [{ name: 'm', upstreams: ['a', 'b'] }],
      }),
    });
    set.a.next(fail);
    expect((await set.chat().end()).status).toBe(503);
    const held = gate();
    set.a.next(async (_request, answer) => {
      await held.opened;
      await answer.json(200, completion());
    });
    let first = set.chat();
    await waitFor(async () => {
      if (set.a.chats.length > 1) return true;
      if (first.ending !== null) first = set.chat();
      return false;
    }, 'a trial was under way');
    expect((await set.chat().end()).json).toMatchObject({ error: { code: 'all_upstreams_cooling' } });
    held.open();
    expect((await first.end()).status).toBe(200);
    expect(set.a.chats.map(({ json }) => json['model'])).toEqual(['x', 'x']);
    expect([await gauge(set, 'fail_streak'), await gauge(set, 'fail_streak', 'b')]).toEqual([0, 0]);
  });
});
