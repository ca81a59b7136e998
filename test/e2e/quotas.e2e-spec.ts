import { describe, expect, it } from 'vitest';
import { completion } from '../support/answers.js';
import type { RawAnswer } from '../support/raw-client.js';
import { answerWell } from '../support/scripted-upstream.js';
import { secretKey } from '../support/secret-watch.js';
import { consumer } from '../support/consumers.js';
import { stage, type Stage } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

/** Turns so seldom that no test meets it. */
const LONG = 'P360D';
const requests = (limit: number) => ({ quota: [{ requests: limit, per: LONG }] });
const tokens = (limit: number) => ({ quota: [{ tokens: limit, per: LONG }] });

const by = (answer: RawAnswer): string | undefined => answer.header('x-llm-proxy-upstream');
async function left({ gateway }: Stage, scope: string, id: string): Promise<number | undefined> {
  return (await gateway.metrics()).find('llm_proxy_quota_remaining', { scope, id })[0]?.value;
}

describe('preventive quotas', () => {
  it('skip a candidate whose requests are used up, without asking it', async () => {
    const set = await stage({ upstreams: 2, upstream: (i) => (i === 0 ? requests(2) : {}) });
    const who = [];
    for (let i = 0; i < 4; i++) who.push(by(await set.chat().end()));
    expect(who).toEqual(['a', 'a', 'b', 'b']);
    expect(set.a.requests).toHaveLength(2);
    expect(await left(set, 'upstream', 'a')).toBe(0);
    expect(
      set.gateway.messages.some((line) => /upstream=a closed by quota \(~\d+s\), skipped$/.test(line)),
    ).toBe(true);
  });

  it('answer 429 where all are used up, and count it', async () => {
    const set = await stage({ upstreams: 2, upstream: requests(1) });
    await set.chat().end();
    await set.chat().end();
    const answer = await set.chat().end();
    expect(answer.status).toBe(429);
    expect(answer.json).toMatchObject({
      error: { code: 'quota_exhausted', type: 'rate_limit_error', param: null, attempts: [] },
    });
    const length = 360 * 86_400_000;
    const seconds = Math.ceil((length - (Date.now() % length)) / 1000);
    expect(Math.abs(Number(answer.header('retry-after')) - seconds)).toBeLessThanOrEqual(2);
    expect(answer.header('retry-after-ms')).toBe('60000');
    expect(answer.header('x-should-retry')).toBe('false');
    expect([set.a.requests.length, set.b.requests.length]).toEqual([1, 1]);
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_rejected_total', { model: 'm', reason: 'quota' })).toBe(1);
  });

  it('let a candidate in again when its window turns', async () => {
    const set = await stage({ upstream: { quota: [{ requests: 1, per: 'PT2S' }] } });
    await waitFor(() => Date.now() % 2000 < 1000, 'enough of a window was left');
    const turn = Date.now() - (Date.now() % 2000) + 2000;
    expect((await set.chat().end()).status).toBe(200);
    expect((await set.chat().end()).status).toBe(429);
    await waitFor(async () => (await set.chat().end()).status === 200, 'the window turned');
    expect(Date.now()).toBeGreaterThanOrEqual(turn);
    expect(set.a.requests).toHaveLength(2);
  });

  it('slide where the file says so', async () => {
    const set = await stage({ upstream: { quota: [{ requests: 1, per: 'PT1S', window: 'sliding' }] } });
    await set.chat().end();
    const after = Date.now();
    expect((await set.chat().end()).status).toBe(429);
    await waitFor(async () => (await set.chat().end()).status === 200, 'the request had left the window');
    expect(Date.now() - after).toBeGreaterThan(800);
  });

  it('of a provider count the requests of all its upstreams', async () => {
    const set = await stage({
      provider: requests(2),
      file: () => ({
        upstreams: ['x', 'y'].map((id) => ({ id, provider: 'pa', model: id })),
        models: ['x', 'y'].map((name) => ({ name, upstreams: [name] })),
      }),
    });
    const ask = async (model: string) => (await set.chat({ model }).end()).status;
    expect([await ask('x'), await ask('y'), await ask('x'), await ask('y')]).toEqual([200, 200, 429, 429]);
    expect(await left(set, 'provider', 'pa')).toBe(0);
  });

  it('of an entry count what its model asks, and nobody else', async () => {
    const set = await stage({
      file: () => ({
        models: [
          { name: 'm', upstreams: [{ upstream: 'a', ...requests(1) }] },
          { name: 'n', upstreams: ['a'] },
        ],
      }),
    });
    const ask = async (model: string) => set.chat({ model }).end();
    expect([(await ask('m')).status, (await ask('n')).status]).toEqual([200, 200]);
    const refused = await ask('m');
    expect(refused.status).toBe(429);
    expect(refused.json).toMatchObject({
      error: { attempts: [{ upstream: 'a', provider: 'pa', tier: 1, skipped: 'quota' }] },
    });
    expect(await left(set, 'entry', 'm/a')).toBe(0);
  });

  it('are reserved before a request is sent: of eight at once, three go', async () => {
    const set = await stage({ upstream: requests(3) });
    const hold = gate();
    set.a.always(async (_r, answer) => {
      await hold.opened;
      await answer.json(200, completion());
    });
    const answers = Array.from({ length: 8 }, () => set.chat().end());
    let refused = 0;
    for (const answer of answers) void answer.then(({ status }) => (refused += status === 429 ? 1 : 0));
    await waitFor(() => refused === 5, 'five were refused at once');
    expect(set.a.requests).toHaveLength(3);
    hold.open();
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(3);
  });

  it('are given back by an attempt that never reached the provider', async () => {
    const set = await stage({
      upstreams: 2,
      upstream: (i) =>
        i === 0
          ? {
              quota: [
                { requests: 1, per: LONG },
                { tokens: 10, per: LONG },
              ],
            }
          : {},
      file: ([, b]) => ({
        providers: [
          { id: 'pa', url: 'http://127.0.0.1:1/v1' },
          { id: 'pb', url: b?.url },
        ],
      }),
    });
    for (let i = 0; i < 3; i++) {
      const answer = await set.chat().end();
      expect([by(answer), answer.header('x-llm-proxy-attempts')]).toEqual(['b', '2']);
    }
    const metrics = await set.gateway.metrics();
    expect(metrics.find('llm_proxy_quota_remaining', { id: 'a' }).map(({ value }) => value)).toEqual([1, 10]);
  });

  it('count a request that the provider refused or cut, since it came there', async () => {
    const set = await stage({ upstreams: 2, upstream: (i) => (i === 0 ? requests(3) : {}) });
    set.a.next(
      (_r, answer) => answer.error(503),
      (_r, answer) => answer.error(429),
      async (_r, answer) => {
        await answer.head(200, { 'content-type': 'application/json' });
        answer.reset();
      },
    );
    for (let i = 0; i < 4; i++) expect(by(await set.chat().end())).toBe('b');
    expect(set.a.requests).toHaveLength(3);
    expect(await left(set, 'upstream', 'a')).toBe(0);
  });

  it('mixed with resting ones: 503 with the sooner time', async () => {
    const set = await stage({
      upstreams: 2,
      upstream: (i) => (i === 0 ? requests(1) : { backoff: 'PT1M', probe_interval: 'PT0S' }),
    });
    set.b.always((_r, answer) => answer.error(503, { 'retry-after': '20' }));
    expect(by(await set.chat().end())).toBe('a');
    const failed = await set.chat().end();
    expect([failed.status, failed.header('retry-after')]).toEqual([503, '20']);
    const cooling = await set.chat().end();
    expect(cooling.status).toBe(503);
    expect(cooling.json).toMatchObject({ error: { code: 'all_upstreams_cooling' } });
    expect(Number(cooling.header('retry-after'))).toBeLessThanOrEqual(20);
  });
});

describe('quotas of keys', () => {
  const key = (id: string, more: object = {}) => ({ id, value: secretKey(id), ...more });
  const keysAt = ({ requests: seen }: Stage['a']) =>
    seen.map((request) =>
      ['x', 'y'].find((id) => request.header('authorization') === `Bearer ${secretKey(id)}`),
    );

  it('send the next key where one is used up, and show what is left', async () => {
    const set = await stage({
      provider: { key: undefined, keys: [key('x', requests(2)), key('y')], key_order: 'ordered' },
    });
    expect(await left(set, 'key', 'pa/x')).toBe(2);
    for (let i = 0; i < 4; i++) expect((await set.chat().end()).status).toBe(200);
    expect(keysAt(set.a)).toEqual(['x', 'x', 'y', 'y']);
    expect(await left(set, 'key', 'pa/x')).toBe(0);
  });

  it('answer 429 where all keys are used up', async () => {
    const set = await stage({
      provider: { key: undefined, keys: [key('x', requests(1)), key('y', requests(1))] },
    });
    for (let i = 0; i < 2; i++) expect((await set.chat().end()).status).toBe(200);
    const answer = await set.chat().end();
    expect(answer.status).toBe(429);
    expect(answer.json).toMatchObject({ error: { code: 'quota_exhausted' } });
    expect(set.a.requests).toHaveLength(2);
  });

  it('count each attempt with its key, and end the walk where nothing is left', async () => {
    const set = await stage({
      upstreams: 2,
      provider: (i) => (i === 0 ? { key: undefined, keys: [key('x'), key('y')], key_order: 'ordered' } : {}),
      upstream: (i) => (i === 0 ? { ...requests(3), backoff: 'PT1H', probe_interval: 'PT0S' } : {}),
    });
    set.a.always((_r, answer) => answer.error(429));
    // Both keys are too fast, and rest: two of three are gone.
    expect((await set.chat().end()).header('x-llm-proxy-trail')).toBe('a/x=429,a/y=429,b=200');
    expect(await left(set, 'upstream', 'a')).toBe(1);
  });

  it('do not retry a broken upstream with what is used up, and let it rest all the same', async () => {
    const set = await stage({
      upstreams: 2,
      provider: (i) => (i === 0 ? { key: undefined, keys: [key('x', requests(1))] } : {}),
      upstream: (i) => (i === 0 ? { backoff: 'PT1H', probe_interval: 'PT0S' } : {}),
    });
    set.a.always((_r, answer) => answer.error(503));
    expect(by(await set.chat().end())).toBe('b');
    expect(set.a.requests).toHaveLength(1);
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_upstream_fail_streak', { upstream: 'a' })).toBe(1);
  });

  it('let a key that the provider calls used up rest until its longest window turns, a day at most', async () => {
    const rest = async (quota: object[]) => {
      const set = await stage({ provider: { key: undefined, keys: [key('x', { quota })] } });
      set.a.always((_r, answer) =>
        answer.json(429, { error: { code: 'insufficient_quota', message: 'no' } }),
      );
      await set.chat().end();
      return (await set.gateway.metrics()).sum('llm_proxy_key_resting_seconds', { key: 'x', upstream: '' });
    };
    const toMidnight = 86_400 - (Math.floor(Date.now() / 1000) % 86_400);
    const day = await rest([
      { requests: 9, per: 'PT1M' },
      { requests: 99, per: 'P1D' },
    ]);
    expect(Math.abs(day - toMidnight)).toBeLessThan(10);
    expect(await rest([{ tokens: 9_000_000, per: 'P360D', window: 'sliding' }])).toBeCloseTo(86_400, -2);
    expect(await rest([])).toBeCloseTo(1800, -2);
  });
});

describe('probes', () => {
  it('count where the provider answered them', async () => {
    const set = await stage({
      upstreams: 2,
      upstream: (i) => (i === 0 ? { ...requests(2), backoff: 'PT1M', probe_interval: 'PT0.05S' } : {}),
    });
    let broken = true;
    set.a.always((request, answer) => (broken ? answer.error(503) : answerWell(request, answer)));
    expect(by(await set.chat().end())).toBe('b');
    await waitFor(() => set.a.probes.length >= 2, 'it was probed');
    // One that is under way holds a request.
    await waitFor(async () => (await left(set, 'upstream', 'a')) === 1, 'failed ones were given back');
    broken = false;
    await set.gateway.logged('probe upstream=a ok');
    expect(await left(set, 'upstream', 'a')).toBe(0);
  });

  it('are not sent where nothing is left', async () => {
    const set = await stage({
      upstreams: 2,
      upstream: (i) => (i === 0 ? { ...requests(1), backoff: 'PT1M', probe_interval: 'PT0.05S' } : {}),
    });
    set.a.always((_r, answer) => answer.error(503));
    expect(by(await set.chat().end())).toBe('b');
    const before = performance.now();
    await waitFor(() => performance.now() - before > 300, 'several intervals had passed');
    expect(set.a.probes).toEqual([]);
    expect((await set.gateway.metrics()).sum('llm_proxy_probe_pings_total')).toBe(0);
  });
});

describe('llm_proxy_quota_remaining', () => {
  it('exists from the start for each quota, with its labels', async () => {
    const set = await stage({
      provider: tokens(500),
      upstream: { quota: [{ requests: 5, per: 'PT1M', window: 'sliding' }] },
      file: () => ({ models: [{ name: 'm', upstreams: [{ upstream: 'a', ...requests(2) }] }] }),
    });
    const metrics = await set.gateway.metrics();
    expect(metrics.find('llm_proxy_quota_remaining').map(({ labels, value }) => [labels, value])).toEqual([
      [{ scope: 'provider', id: 'pa', unit: 'tokens', per: LONG }, 500],
      [{ scope: 'upstream', id: 'a', unit: 'requests', per: 'PT1M' }, 5],
      [{ scope: 'entry', id: 'm/a', unit: 'requests', per: LONG }, 2],
    ]);
  });

  it('names no more consumers than metrics may', async () => {
    const set = await stage({
      server: { metrics_consumers: 2 },
      file: () => ({
        consumers: ['a', 'b', 'c', 'd'].map((id, i) =>
          consumer(id, { quota: [{ requests: 9 - i, per: 'P1D' }] }),
        ),
      }),
    });
    const metrics = await set.gateway.metrics();
    expect(
      metrics.find('llm_proxy_quota_remaining').map(({ labels, value }) => [labels['id'], value]),
    ).toEqual([
      ['a', 9],
      ['b', 8],
      ['other', 6],
    ]);
  });
});
