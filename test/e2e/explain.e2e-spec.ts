import { describe, expect, it } from 'vitest';
import { bearer, consumer } from '../support/consumers.js';
import { secretKey } from '../support/secret-watch.js';
import { stage } from '../support/stage.js';

const TOKEN = secretKey('admin');
const asked = (token = TOKEN) => ({
  headers: { 'x-llm-proxy-explain': '1', authorization: `Bearer ${token}` },
});

describe('x-llm-proxy-explain', () => {
  it('lists every candidate, with what would become of it, and sends nothing', async () => {
    const set = await stage({
      upstreams: 3,
      server: { admin_token: TOKEN },
      upstream: (i) => (i === 0 ? { backoff: 'PT1H', probe_interval: 'PT0S' } : { max_concurrency: 1 }),
      model: {
        upstreams: [
          { upstream: 'a', tier: 1 },
          { upstream: 'b', tier: 2 },
          { upstream: 'c', tier: 3 },
        ],
      },
    });
    set.a.next((_request, answer) => answer.error(503));
    set.b.next(() => {});
    const holding = set.chat();
    await set.b.chat(0);
    const before = set.a.requests.length + set.b.requests.length + set.c.requests.length;
    const answer = await set.chat({}, asked()).end();
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({
      object: 'explanation',
      model: 'm',
      candidates: [
        { upstream: 'a', provider: 'pa', real_model: 'real-a', tier: 1, decision: 'skip', reason: 'cooling' },
        { upstream: 'b', tier: 2, decision: 'skip', reason: 'busy', slots: '1/1' },
        { upstream: 'c', tier: 3, decision: 'take', reason: 'free and healthy', slots: '0/1' },
      ],
    });
    expect(set.a.requests.length + set.b.requests.length + set.c.requests.length).toBe(before);
    const rejected = (await set.gateway.metrics()).sum('llm_proxy_requests_total', { upstream: 'c' });
    expect(rejected).toBe(0);
    holding.leave();
  });

  it('lists the upstreams of the model that are no candidates, and why', async () => {
    const set = await stage({
      upstreams: 6,
      server: { admin_token: TOKEN },
      provider: (i) => (i === 5 ? { disabled: true } : {}),
      upstream: (i) =>
        [{ disabled: true }, { protocol: 'messages' }, { serves: ['embeddings'] }, {}, { labels: { in: 'no' } }, {}][i] ?? {},
      file: () => ({ routes: [{ id: 'r', path: '/v1', select: { upstreams: 'in!=no' } }] }),
    }); // prettier-ignore
    const skipped = async (path: string): Promise<unknown> => {
      const answer = await set.gateway
        .send({ path, body: { model: 'm', input: 'x', messages: [] }, ...asked() })
        .end();
      const { candidates } = answer.json as { candidates: { upstream: string; decision: string; reason: string }[] };
      return candidates.map(({ upstream, decision, reason }) => `${upstream} ${decision} ${reason}`);
    }; // prettier-ignore
    expect(await skipped('/v1/chat/completions')).toEqual([
      'd take free and healthy', 'a skip disabled', 'b skip protocol', 'c skip serves', 'e skip route', 'f skip disabled',
    ]); // prettier-ignore
    expect(await skipped('/v1/messages')).toEqual([
      'b take free and healthy', 'a skip disabled', 'c skip serves', 'd skip protocol', 'e skip route', 'f skip disabled',
    ]); // prettier-ignore
    const refused = await set.gateway
      .send({ path: '/v1/rerank', body: { model: 'm', query: 'x', documents: [] }, ...asked() })
      .end();
    expect([refused.status, (refused.json['error'] as { code: string }).code]).toEqual([400, 'unsupported_protocol']);
  }); // prettier-ignore

  it('is for holders of the token only, also where there are consumers', async () => {
    const set = await stage({
      server: { admin_token: TOKEN },
      file: () => ({ consumers: [consumer('red')] }),
    });
    const refused = await set.chat({}, { headers: { ...bearer('red'), 'x-llm-proxy-explain': '1' } }).end();
    expect([refused.status, (refused.json['error'] as { code: string }).code]).toEqual([
      401,
      'invalid_admin_token',
    ]);
    expect((await set.chat({}, asked()).end()).json['object']).toBe('explanation');
    // The token is no key: without the header nobody gets in with it.
    const { authorization } = asked().headers;
    expect((await set.chat({}, { headers: { authorization } }).end()).status).toBe(401);
    expect(set.a.requests).toHaveLength(0);
  });

  it('finds an id whoever it was issued to, and keeps to the upstream that issued it', async () => {
    const set = await stage({
      upstreams: 2,
      server: { admin_token: TOKEN },
      provider: { protocol: 'responses' },
      file: () => ({ consumers: [consumer('red')] }),
    });
    set.a.next((_request, answer) => answer.error(500));
    set.b.always((_request, answer) => answer.json(200, { id: 'resp_1', output: [] }));
    const ask = (body: object, headers: Record<string, string>) =>
      set.gateway.send({ path: '/v1/responses', body: { model: 'm', input: 'x', ...body }, headers }).end();
    expect((await ask({}, bearer('red'))).status).toBe(200);
    const explained = await ask({ previous_response_id: 'resp_1' }, asked().headers);
    const { candidates } = explained.json as { candidates: { upstream: string; reason: string }[] };
    expect(candidates.map(({ upstream, reason }) => `${upstream} ${reason}`)).toEqual([
      'b free and healthy',
      'a issued',
    ]);
    // What nobody was issued is found by nobody.
    expect((await ask({ previous_response_id: 'resp_2' }, asked().headers)).status).toBe(404);
  });

  it('moves no metric of requests, whatever comes of it', async () => {
    const set = await stage({
      upstreams: 1,
      server: { admin_token: TOKEN, allow_hints: true, body_limit: 1000 },
      file: () => ({ consumers: [consumer('red')] }),
    });
    const counted = async () =>
      (await set.gateway.metrics()).text
        .split('\n')
        .filter((line) => /^llm_proxy_(requests|rejected|consumer|affinity|failures|first_byte)/.test(line));
    const before = await counted();
    const { headers } = asked();
    const send = (path: string, body: object | string, more: Record<string, string> = {}) =>
      set.gateway.send({ path: `/v1/${path}`, body, headers: { ...headers, ...more } }).end();
    const statuses = [
      await send('chat/completions', { model: 'm', messages: [] }),
      await send('chat/completions', { model: 'nowhere', messages: [] }),
      await send('messages', { model: 'm', messages: [] }),
      await send('chat/completions', { model: 'm', messages: [] }, { 'x-llm-proxy-tier': '9' }),
      await send('chat/completions', { messages: [] }),
      await send('chat/completions', 'no json'),
      await send('chat/completions', { model: 'm', padding: 'x'.repeat(2000) }),
      await send('chat/completions', { model: 'm' }, { 'content-type': 'text/plain' }),
    ].map(({ status }) => status);
    expect(statuses).toEqual([200, 404, 400, 400, 400, 400, 413, 415]);
    expect(await counted()).toEqual(before);
  });

  it('does nothing without server.admin_token, and never reaches a provider', async () => {
    const set = await stage();
    expect((await set.chat({}, asked()).end()).json['object']).toBe('chat.completion');
    expect(set.a.requests[0]?.header('x-llm-proxy-explain')).toBeUndefined();
  });
});
