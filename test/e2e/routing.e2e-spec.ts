import { describe, expect, it } from 'vitest';
import type { RawAnswer } from '../support/raw-client.js';
import type { Script } from '../support/scripted-upstream.js';
import { stage, type Stage } from '../support/stage.js';

const who = (answer: RawAnswer) => answer.header('x-llm-proxy-upstream');
const refuse: Script = (_request, answer) => answer.error(503);
interface Told {
  readonly error: { readonly code: string; readonly param: unknown; readonly attempts: readonly object[] };
}

const tiers = {
  upstreams: [
    { upstream: 'c', tier: 3 },
    { upstream: 'a', tier: 1 },
    { upstream: 'b', tier: 2 },
  ],
};

describe('tiers', () => {
  it('are tried from the lowest, and all of them stand in the error', async () => {
    const set = await stage({
      upstreams: 3,
      model: tiers,
      upstream: (i) => (i === 1 ? { backoff: 'PT1H', probe_interval: 'PT0S' } : {}),
    });
    expect(who(await set.chat().end())).toBe('a');
    set.a.always(refuse);
    expect(who(await set.chat().end())).toBe('b');
    set.b.always(refuse);
    set.c.always((_request, answer) => answer.error(429));
    await set.chat().end();
    const answer = await set.chat().end();
    expect(answer.status).toBe(503);
    expect((answer.json as unknown as Told).error.attempts).toEqual([
      { upstream: 'a', provider: 'pa', tier: 1, result: '5xx', status: 503 },
      { upstream: 'b', provider: 'pb', tier: 2, skipped: 'cooling' },
      { upstream: 'c', provider: 'pc', tier: 3, result: '429', status: 429 },
    ]);
  });

  it('tell of a busy one', async () => {
    const set = await stage({
      model: { upstreams: [{ upstream: 'a', tier: 4 }] },
      upstream: { max_concurrency: 1 },
    });
    set.a.next(() => {});
    const holding = set.chat();
    await set.a.chat(0);
    const answer = await set.chat().end();
    expect((answer.json as unknown as Told).error.attempts).toEqual([
      { upstream: 'a', provider: 'pa', tier: 4, skipped: 'busy' },
    ]);
    holding.leave();
  });

  it('try an upstream that failed through one entry through no other', async () => {
    const set = await stage({
      upstreams: 2,
      model: {
        upstreams: [
          { upstream: 'a', tier: 1 },
          { upstream: 'a', tier: 2 },
          { upstream: 'b', tier: 3 },
        ],
      },
    });
    set.a.always(refuse);
    const answer = await set.chat().end();
    expect([who(answer), answer.header('x-llm-proxy-attempts')]).toEqual(['b', '2']);
  });
});

describe('limits of one request', () => {
  it('max_attempts ends after as many failures', async () => {
    const set = await stage({ upstreams: 3, model: { max_attempts: 2 } });
    for (const upstream of [set.a, set.b]) upstream.always(refuse);
    const answer = await set.chat().end();
    expect([answer.status, answer.header('x-llm-proxy-attempts')]).toEqual([503, '2']);
    expect((answer.json as unknown as Told).error.code).toBe('all_upstreams_failed');
    expect(set.c.requests).toHaveLength(0);
  });

  it('deadline cuts the attempt that runs and begins no other', async () => {
    const set = await stage({ upstreams: 2, model: { deadline: 'PT0.3S' } });
    set.a.next(() => {});
    const answer = await set.chat().end();
    expect([answer.status, answer.header('x-llm-proxy-attempts')]).toEqual([503, '1']);
    expect(set.b.requests).toHaveLength(0);
    await set.gateway.logged('upstream=a deadline of 300ms is over → failover');
    expect((await set.gateway.metrics()).sum('llm_proxy_upstream_inflight', {})).toBe(0);
  });
});

describe('default_model and direct addressing', () => {
  const ask = (set: Stage, model: string) => set.chat({ model }).end();

  it('default_model takes unknown names, in the open', async () => {
    const set = await stage({ file: () => ({ default_model: 'm' }) });
    const answer = await ask(set, 'gpt-nobody-knows');
    expect([answer.status, answer.header('x-llm-proxy-model')]).toEqual([200, 'm']);
    expect((await set.gateway.logged('default_model')).msg).toContain('gpt-nobody-knows');
    expect((await set.chat({ model: 7 }).end()).status).toBe(400);
  });

  it('provider/model reaches an upstream without a model entry, under no name', async () => {
    const set = await stage({ upstreams: 2, server: { direct: true }, model: { upstreams: ['a'] } });
    for (const name of ['pb/real-b', 'pb:real-b']) {
      const answer = await ask(set, name);
      expect([answer.status, who(answer), answer.header('x-llm-proxy-model')]).toEqual([200, 'b', undefined]);
    }
    expect(set.b.requests.at(-1)?.json).toMatchObject({ model: 'real-b' });
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_requests_total', { model: '', upstream: 'b', result: 'ok' })).toBe(2);
    expect((await ask(set, 'pb/other')).status).toBe(404);
    set.b.next((_request, answer) => answer.json(503, {}));
    const failed = await ask(set, 'pb/real-b');
    expect([
      failed.status,
      failed.header('x-llm-proxy-attempts'),
      failed.header('x-llm-proxy-trail'),
    ]).toEqual([503, '1', 'b=503']);
    const listed = await set.gateway.send({ method: 'GET', path: '/v1/models', headers: {} }).end();
    expect(listed.text).not.toContain('real-b');
  });

  it('provider/model is no way around an entry of that name that is disabled', async () => {
    const models = [
      { name: 'm', upstreams: ['a'] },
      { name: 'pa/real-a', upstreams: ['a'], disabled: true },
    ];
    const set = await stage({ server: { direct: true }, file: () => ({ models }) });
    expect((await ask(set, 'pa/real-a')).status).toBe(404);
    expect((await ask(set, 'pa:real-a')).status).toBe(200);
  });

  it('provider/model is called by its name where it cannot be used', async () => {
    const set = await stage({ server: { direct: true } });
    const body = { model: 'pa/real-a', max_tokens: 5, messages: [] };
    const answer = await set.gateway.send({ path: '/v1/messages', body }).end();
    expect([answer.status, answer.text]).toEqual([
      400,
      expect.stringContaining('The model \\"pa/real-a\\" cannot'),
    ]);
  });
});

describe('hints', () => {
  const hinted = (headers: Record<string, string>) => ({ headers });

  it('narrow the choice, and their errors name the header', async () => {
    const set = await stage({ upstreams: 3, model: tiers, server: { allow_hints: true } });
    const from2 = hinted({ 'x-llm-proxy-tier': '2' });
    expect(who(await set.chat({}, from2).end())).toBe('b');
    expect(who(await set.chat({}, hinted({ 'x-llm-proxy-providers': 'pc' })).end())).toBe('c');
    for (const upstream of [set.b, set.c]) upstream.always(refuse);
    const failed = await set.chat({}, from2).end();
    expect((failed.json as unknown as Told).error.attempts.at(-1)).toEqual({
      upstream: 'a',
      provider: 'pa',
      tier: 1,
      skipped: 'tier',
    });
    expect(set.a.requests).toHaveLength(0);
    const refused = await set.chat({}, hinted({ 'x-llm-proxy-tier': '9' })).end();
    expect(refused.status).toBe(400);
    expect((refused.json as unknown as Told).error).toMatchObject({
      code: 'no_candidates',
      param: 'x-llm-proxy-tier',
    });
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_rejected_total', { model: 'm', reason: 'no_candidates' })).toBe(1);
  });

  it('name a provider as our own headers show it', async () => {
    const ids = ['при вет', 'a,b', '50%'];
    const set = await stage({
      upstreams: 3,
      provider: (i) => ({ id: ids[i] }),
      upstream: (i) => ({ provider: ids[i] }),
      server: { allow_hints: true },
    });
    for (const [i, name] of ['a', 'b', 'c'].entries()) {
      const hint = { 'x-llm-proxy-providers': encodeURIComponent(ids[i] as string) };
      const answer = await set.chat({}, hinted(hint)).end();
      expect([answer.status, who(answer)]).toEqual([200, name]);
    }
  });

  it('are ignored, and never passed on, where they are not allowed', async () => {
    const set = await stage({ upstreams: 3, model: tiers });
    expect(who(await set.chat({}, hinted({ 'x-llm-proxy-tier': '2' })).end())).toBe('a');
    expect(set.a.requests[0]?.header('x-llm-proxy-tier')).toBeUndefined();
  });
});

describe('what answers show of the back end', () => {
  it('the trail lists every attempt, also on an error of the service', async () => {
    const set = await stage({ upstreams: 2 });
    set.a.always((_request, answer) => answer.reset());
    expect((await set.chat().end()).header('x-llm-proxy-trail')).toBe('a=net_err,b=200');
    set.b.always((_request, answer) => answer.error(429));
    expect((await set.chat().end()).header('x-llm-proxy-trail')).toBe('a=net_err,b=429');
  });

  it('ids in the trail are encoded, its own signs too', async () => {
    const set = await stage({
      file: ([a]) => ({
        providers: [{ id: 'p', url: a?.url }],
        upstreams: [{ id: 'x/y=1, ü', provider: 'p', model: 'r' }],
        models: [{ name: 'm', upstreams: ['x/y=1, ü'] }],
      }),
    });
    expect((await set.chat().end()).header('x-llm-proxy-trail')).toBe('x%2Fy%3D1%2C%20%C3%BC=200');
  });

  it('expose: none shows the model only', async () => {
    const set = await stage({ server: { expose: 'none' } });
    const shown = (answer: RawAnswer) =>
      answer.headerLines.map(([name]) => name).filter((name) => name.startsWith('x-llm-proxy-'));
    expect(shown(await set.chat().end())).toEqual(['x-llm-proxy-model']);
    set.a.always(refuse);
    const failed = await set.chat().end();
    expect(shown(failed)).toEqual(['x-llm-proxy-model']);
    expect((failed.json as unknown as Told).error.attempts).toEqual([]);
    expect(failed.header('retry-after')).toBe('1');
  });

  it('expose: full shows the real model', async () => {
    const set = await stage({ server: { expose: 'full' } });
    expect((await set.chat().end()).header('x-llm-proxy-real-model')).toBe('real-a');
  });

  it('x-should-retry: false where nothing recovers within a minute', async () => {
    const set = await stage({ upstream: { backoff: 'PT1H', probe_interval: 'PT0S' } });
    set.a.next((_request, answer) => answer.send(503, '', { 'retry-after': '120' }));
    for (const answer of [await set.chat().end(), await set.chat().end()]) {
      expect(answer.header('x-should-retry')).toBe('false');
      expect(Number(answer.header('retry-after'))).toBeGreaterThan(100);
      expect(answer.header('retry-after-ms')).toBe('60000');
    }
  });
});
