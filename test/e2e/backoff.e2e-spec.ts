import { describe, expect, it } from 'vitest';
import { completion, delta, DONE } from '../support/answers.js';
import type { Script } from '../support/scripted-upstream.js';
import { stage, type Stage } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

const fail: Script = (_request, answer) => answer.error(503);
const noProbes = { probe_interval: 'PT0S' };

/** Rests of the upstream, in order, as the log names them. */
function rests(set: Stage, id = 'a'): string[] {
  return set.gateway.messages.flatMap((msg) =>
    msg.includes(`upstream=${id} `) ? (/backoff: rest (\S+)\)/.exec(msg)?.slice(1) ?? []) : [],
  );
}

async function gauge(set: Stage, name: string, upstream = 'a'): Promise<number> {
  return (await set.gateway.metrics()).sum(`llm_proxy_upstream_${name}`, { upstream });
}

async function rested(set: Stage, upstream = 'a'): Promise<void> {
  await waitFor(async () => (await gauge(set, 'cooling_seconds', upstream)) === 0, `${upstream} had rested`);
}

describe('backoff', () => {
  it('doubles from one second with each failure after a rest', async () => {
    const set = await stage({ upstream: { backoff: 'PT1M', ...noProbes } });
    set.a.always(fail);
    for (const streak of [1, 2, 3]) {
      expect((await set.chat().end()).status).toBe(503);
      expect(await gauge(set, 'fail_streak')).toBe(streak);
      const cooling = await gauge(set, 'cooling_seconds');
      expect(cooling).toBeGreaterThan(0);
      expect(cooling).toBeLessThanOrEqual(2 ** (streak - 1));
      if (streak < 3) await rested(set);
    }
    expect(rests(set)).toEqual(['PT1S', 'PT2S', 'PT4S']);
  });

  it('never rests longer than the cap', async () => {
    const set = await stage({ upstream: { backoff: 'PT0.1S', ...noProbes } });
    set.a.always(fail);
    for (let i = 0; i < 4; i++) {
      await set.chat().end();
      await rested(set);
    }
    expect(rests(set)).toEqual(Array(4).fill('PT100MS'));
  });

  it('answers 503 all upstreams cooling while all rest', async () => {
    const set = await stage({ upstreams: 2, upstream: { backoff: 'PT1M', ...noProbes } });
    set.a.always((_r, answer) => answer.error(429, { 'retry-after': '20' }));
    set.b.always((_r, answer) => answer.error(429, { 'retry-after': '10' }));
    const first = await set.chat().end();
    expect(first.json).toMatchObject({
      error: { code: 'all_upstreams_failed', attempts: [{ upstream: 'a' }, { upstream: 'b' }] },
    });
    expect(first.header('retry-after')).toBe('10');
    const second = await set.chat().end();
    expect(second.status).toBe(503);
    const seconds = Number(second.header('retry-after'));
    expect(seconds).toBeGreaterThan(5);
    expect(seconds).toBeLessThanOrEqual(10);
    expect(second.json).toMatchObject({
      error: {
        message: `all upstreams cooling, retry in ${seconds}s`,
        code: 'all_upstreams_cooling',
        attempts: [],
      },
    });
    const ms = Number(second.header('retry-after-ms'));
    expect(ms).toBeGreaterThan((seconds - 1) * 1000);
    expect(ms).toBeLessThanOrEqual(seconds * 1000);
    expect([set.a.requests.length, set.b.requests.length]).toEqual([1, 1]);
  });

  it('caps retry-after-ms at a minute', async () => {
    const set = await stage({ upstream: { backoff: 'PT1H', ...noProbes } });
    set.a.always((_r, answer) => answer.error(429, { 'retry-after': '3000' }));
    const answer = await set.chat().end();
    expect([answer.header('retry-after'), answer.header('retry-after-ms')]).toEqual(['3000', '60000']);
  });

  it('says busy, not cooling, where one is full and another rests', async () => {
    const set = await stage({
      upstreams: 2,
      upstream: (i) => (i === 0 ? { backoff: 'PT1M', ...noProbes } : { max_concurrency: 1 }),
    });
    set.a.always(fail);
    const hold = gate();
    set.b.next(async (_r, answer) => {
      await hold.opened;
      await answer.json(200, completion());
    });
    const holder = set.chat();
    await set.b.chat(0);
    expect((await set.chat().end()).json).toMatchObject({
      error: { code: 'all_upstreams_busy', attempts: [] },
    });
    hold.open();
    await holder.end();
  });

  const later = (seconds: number): string => new Date(Date.now() + seconds * 1000).toUTCString();
  it.each([
    ['seconds', { 'retry-after': '30' }, 29, 30],
    ['both, of which the milliseconds count', { 'retry-after': '50', 'retry-after-ms': '30000' }, 29, 30],
    ['both, of which only the seconds can be read', { 'retry-after': '30', 'retry-after-ms': 'x' }, 29, 30],
    ['a date', () => ({ 'retry-after': later(30) }), 27, 30],
    ['milliseconds', { 'retry-after-ms': '12345' }, 12, 12.345],
    ['beyond the cap', { 'retry-after': '100000' }, 59, 60],
    ['shorter than the rest', { 'retry-after-ms': '10' }, 0.5, 1],
    ['zero', { 'retry-after': '0' }, 0.5, 1],
    ['negative', { 'retry-after': '-30' }, 0.5, 1],
    ['a date that has passed', () => ({ 'retry-after': later(-30) }), 0.5, 1],
    ['nonsense', { 'retry-after': 'soon' }, 0.5, 1],
    ['no number', { 'retry-after': 'NaN', 'retry-after-ms': 'Infinity' }, 0.5, 1],
  ])('takes Retry-After: %s', async (_what, headers, atLeast, atMost) => {
    const set = await stage({ upstream: { backoff: 'PT1M', ...noProbes } });
    set.a.always((_r, answer) => answer.error(429, typeof headers === 'function' ? headers() : headers));
    await set.chat().end();
    const cooling = await gauge(set, 'cooling_seconds');
    expect(cooling).toBeGreaterThan(atLeast);
    expect(cooling).toBeLessThanOrEqual(atMost);
  });

  it('is shared by the upstreams of a provider, except those with their own', async () => {
    const set = await stage({
      upstreams: 3,
      file: ([a, b]) => ({
        providers: [
          { id: 'p', url: a?.url, backoff: 'PT1M', ...noProbes },
          { id: 'q', url: b?.url },
        ],
        upstreams: [
          { id: 'a', provider: 'p', model: 'x' },
          { id: 'b', provider: 'p', model: 'y' },
          { id: 'c', provider: 'p', model: 'z', backoff: 'PT2M' },
        ],
      }),
    });
    set.a.next(fail);
    const answer = await set.chat().end();
    expect(answer.header('x-llm-proxy-upstream')).toBe('c');
    expect(set.a.requests.map(({ json }) => json['model'])).toEqual(['x', 'z']);
    const metrics = await set.gateway.metrics();
    const streaks = metrics
      .find('llm_proxy_upstream_fail_streak')
      .map(({ labels, value }) => [labels['upstream'], value]);
    expect(streaks).toEqual([
      ['a', 1],
      ['b', 1],
      ['c', 0],
    ]);
  });

  it('never rests where nobody set one', async () => {
    const set = await stage();
    set.a.always(fail);
    for (let i = 1; i <= 5; i++) {
      await set.chat().end();
      expect(set.a.requests).toHaveLength(i);
    }
    expect(await gauge(set, 'cooling_seconds')).toBe(0);
    expect(rests(set)).toEqual([]);
  });

  it('raises the streak once for requests that fail together', async () => {
    const set = await stage({ upstream: { backoff: 'PT1M', ...noProbes } });
    const hold = gate();
    set.a.always(async (_r, answer) => {
      await hold.opened;
      await answer.error(500);
    });
    const answers = Array.from({ length: 20 }, () => set.chat());
    await set.a.chat(19);
    hold.open();
    for (const answer of answers) await answer.end();
    expect(await gauge(set, 'fail_streak')).toBe(1);
    expect(await gauge(set, 'cooling_seconds')).toBeLessThanOrEqual(1);
  });

  it('is reset at once by a success, also one that began before the rest', async () => {
    const set = await stage({ upstream: { backoff: 'PT1M', ...noProbes } });
    const hold = gate();
    set.a.next(
      async (_r, answer) => {
        await answer.sseHead();
        await answer.write(delta('x'));
        await hold.opened;
        await answer.end(DONE);
      },
      (_r, answer) => answer.error(429, { 'retry-after': '50' }),
    );
    const slow = await set.stream().saw('x');
    await set.chat().end();
    expect(await gauge(set, 'cooling_seconds')).toBeGreaterThan(40);
    hold.open();
    await slow.end();
    await rested(set);
    expect(await gauge(set, 'fail_streak')).toBe(0);
    expect((await set.chat().end()).status).toBe(200);
  });

  it('begins a new streak with a failure that began before a reset', async () => {
    const set = await stage({ upstream: { backoff: 'PT0.1S', ...noProbes } });
    const hold = gate();
    set.a.next(async (_r, answer) => {
      await hold.opened;
      await answer.error(500);
    }, fail);
    const old = set.chat();
    await set.a.chat(0);
    await set.chat().end();
    await rested(set);
    expect((await set.chat().end()).status).toBe(200);
    expect(await gauge(set, 'fail_streak')).toBe(0);
    hold.open();
    await old.end();
    expect(await gauge(set, 'fail_streak')).toBe(1);
  });

  it('takes normal traffic again when the rest ends by time', async () => {
    const set = await stage({ upstreams: 2, upstream: { backoff: 'PT0.1S', ...noProbes } });
    set.a.next(fail);
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    await rested(set);
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('a');
  });

  it('does not overflow beyond 2^31 − 1 ms', async () => {
    const set = await stage({ upstream: { backoff: 'P1Y', probe_interval: 'P1Y' } });
    set.a.next((_r, answer) => answer.error(429, { 'retry-after': '5000000' }));
    await set.chat().end();
    for (let i = 0; i < 20; i++) expect((await set.chat().end()).status).toBe(503);
    expect(await gauge(set, 'cooling_seconds')).toBeGreaterThan(4_999_000);
    expect(set.a.requests).toHaveLength(1);
  });

  it('counts a stream that broke after its first byte', async () => {
    const set = await stage({ upstream: { backoff: 'PT1M', ...noProbes } });
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('x'));
      answer.destroy();
    });
    await set.stream().end();
    await waitFor(async () => (await gauge(set, 'fail_streak')) === 1, 'the streak rose');
  });

  it('does not count a client that left', async () => {
    const set = await stage({ upstream: { backoff: 'PT1M', ...noProbes } });
    set.a.next(() => {});
    const answer = set.chat();
    const received = await set.a.chat(0);
    answer.leave();
    await received.closed;
    await waitFor(
      async () =>
        (await set.gateway.metrics()).sum('llm_proxy_requests_total', { result: 'cancelled' }) === 1,
      'it was counted',
    );
    expect(await gauge(set, 'fail_streak')).toBe(0);
  });
});
