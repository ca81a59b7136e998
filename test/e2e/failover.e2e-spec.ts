import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { completion } from '../support/answers.js';
import type { ReceivedRequest } from '../support/received-request.js';
import type { Script } from '../support/scripted-upstream.js';
import { stage } from '../support/stage.js';

const JSON_TYPE = { 'content-type': 'application/json' };
const HTML = '<!DOCTYPE html><html><body>502</body></html>';
const whole = JSON.stringify(completion());

interface Failure {
  readonly what: string;
  readonly result: string;
  readonly status?: number;
  readonly script: Script;
  readonly stream?: boolean;
}

const failures: Failure[] = [
  ...[429, 402, 500, 502, 503, 504, 529].map((status) => ({
    what: `${status}`,
    result: status === 429 || status === 402 ? `${status}` : '5xx',
    status,
    script: ((_request, answer) => answer.error(status)) as Script,
  })),
  { what: 'a 503 without a body', result: '5xx', status: 503, script: (_r, a) => a.send(503, '') },
  {
    what: 'a 500 whose body never ends',
    result: '5xx',
    status: 500,
    script: async (_r, a) => {
      await a.head(500, JSON_TYPE);
      await a.write('{"error":');
    },
  },
  {
    what: 'a 500 whose head is all there is before a reset',
    result: '5xx',
    status: 500,
    script: async (_r, a) => {
      await a.head(500, JSON_TYPE);
      await a.write('x');
      a.destroy();
    },
  },
  ...[301, 302, 307, 308].map((status) => ({
    what: `a redirect ${status}`,
    result: 'net_err',
    script: ((_request, answer) => answer.send(status, '', { location: 'http://127.0.0.1:1/v1' })) as Script,
  })),
  { what: 'a reset', result: 'net_err', script: (_r, a) => a.reset() },
  { what: 'a close without a byte', result: 'net_err', script: (_r, a) => a.destroy() },
  {
    what: 'no HTTP',
    result: 'net_err',
    script: async (_r, a) => (await a.raw('SSH-2.0-OpenSSH\r\n'), a.destroy()),
  },
  {
    what: 'half a head',
    result: 'net_err',
    script: async (_r, a) => (await a.raw('HTTP/1.1 200 OK\r\nx:'), a.destroy()),
  },
  {
    what: 'a head without end',
    result: 'net_err',
    script: (_r, a) => a.raw(`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(300_000)}`),
  },
  {
    what: 'two content lengths',
    result: 'net_err',
    script: (_r, a) => a.raw('HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}'),
  },
  {
    what: 'an HTML page',
    result: '5xx',
    script: (_r, a) => a.send(200, HTML, { 'content-type': 'text/html' }),
  },
  { what: 'an HTML page without content type', result: '5xx', script: (_r, a) => a.send(200, HTML) },
  {
    what: 'plain text',
    result: '5xx',
    script: (_r, a) => a.send(200, 'ok', { 'content-type': 'text/plain' }),
  },
  {
    what: 'an HTML page to a stream request',
    result: '5xx',
    stream: true,
    script: (_r, a) => a.send(200, HTML, { 'content-type': 'text/html' }),
  },
  { what: 'an error in a 200', result: '5xx', script: (_r, a) => a.json(200, { error: { message: 'no' } }) },
  { what: 'an error text in a 200', result: '5xx', script: (_r, a) => a.json(200, { error: 'overloaded' }) },
  {
    what: 'an error in a 200 to a stream request',
    result: '5xx',
    stream: true,
    script: (_r, a) => a.json(200, { error: { message: 'no' } }),
  },
  {
    what: 'JSON cut by the end of the connection before its length',
    result: 'net_err',
    script: async (_r, a) => {
      await a.head(200, { ...JSON_TYPE, 'content-length': '1000' }, 'length');
      await a.raw(whole);
      a.destroy();
    },
  },
  {
    what: 'JSON cut by a clean end without length',
    result: 'net_err',
    script: async (_r, a) => {
      await a.head(200, JSON_TYPE, 'close');
      await a.end(whole.slice(0, -20));
    },
  },
  {
    what: 'chunked JSON that does not parse',
    result: 'net_err',
    script: async (_r, a) => {
      await a.head(200, JSON_TYPE);
      await a.end(whole.slice(0, 40));
    },
  },
  {
    what: 'chunked JSON cut without the final chunk',
    result: 'net_err',
    script: async (_r, a) => {
      await a.head(200, JSON_TYPE);
      await a.write(whole);
      a.destroy();
    },
  },
  {
    what: 'a stream that breaks before its first body byte',
    result: 'net_err',
    stream: true,
    script: async (_r, a) => {
      await a.sseHead();
      a.destroy();
    },
  },
];

describe('failover: the next upstream answers, and the client sees nothing', () => {
  it.each(failures)('$what → $result', async ({ result, script, stream, status }) => {
    const set = await stage({ upstreams: 2, upstream: { backoff: 'PT1M', probe_interval: 'PT0S' } });
    set.a.next(script);
    const answer = await (stream === true ? set.stream() : set.chat()).end();
    expect(answer.status).toBe(200);
    expect(answer.ending).toBe('complete');
    expect(answer.header('x-llm-proxy-upstream')).toBe('b');
    expect(answer.header('x-llm-proxy-attempts')).toBe('2');
    expect(answer.interim).toEqual([]);
    const metrics = await set.gateway.metrics();
    expect(metrics.find('llm_proxy_requests_total').map(({ labels, value }) => [labels, value])).toEqual([
      [{ model: 'm', upstream: 'a', provider: 'pa', result }, 1],
      [{ model: 'm', upstream: 'b', provider: 'pb', result: 'ok' }, 1],
    ]);
    expect(metrics.sum('llm_proxy_upstream_fail_streak', { upstream: 'a' })).toBe(1);
    expect(metrics.sum('llm_proxy_upstream_cooling_seconds', { upstream: 'a' })).toBeGreaterThan(0);
    const line = await set.gateway.logged('→ failover');
    expect(line.msg).toMatch(/^\[llm-proxy\] chat model=m upstream=a .* → failover \(backoff: rest PT/);
    if (status !== undefined) expect(line.msg).toContain(`returned ${status}`);
  });

  it.each(failures)('alone, $what → 503 all upstreams failed', async ({ result, script, stream, status }) => {
    const set = await stage();
    set.a.next(script);
    const answer = await (stream === true ? set.stream() : set.chat()).end();
    expect(answer.status).toBe(503);
    const { error } = answer.json as { error: Record<string, unknown> & { attempts: { status?: number }[] } };
    expect(error).toMatchObject({ message: 'all upstreams failed', code: 'all_upstreams_failed' });
    expect(error.attempts).toHaveLength(1);
    expect(error.attempts[0]).toMatchObject({ upstream: 'a', provider: 'pa', result });
    if (status !== undefined) expect(error.attempts[0]?.status).toBe(status);
    expect(answer.header('retry-after')).toBe('1');
  });

  it('a refused connection', async () => {
    const set = await stage({
      upstreams: 2,
      file: ([, b]) => ({
        providers: [
          { id: 'pa', url: 'http://127.0.0.1:1/v1' },
          { id: 'pb', url: b?.url },
        ],
      }),
    });
    const answer = await set.chat().end();
    expect(answer.header('x-llm-proxy-upstream')).toBe('b');
    expect(
      (await set.gateway.metrics()).sum('llm_proxy_requests_total', { upstream: 'a', result: 'net_err' }),
    ).toBe(1);
  });

  it('a name that does not resolve', async () => {
    const set = await stage({
      upstreams: 2,
      file: ([, b]) => ({
        providers: [
          { id: 'pa', url: 'http://nowhere.invalid/v1' },
          { id: 'pb', url: b?.url },
        ],
      }),
    });
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    expect(
      (await set.gateway.metrics()).sum('llm_proxy_requests_total', { upstream: 'a', result: 'net_err' }),
    ).toBe(1);
  });

  it('TLS that is none', async () => {
    const set = await stage({
      upstreams: 2,
      file: ([a, b]) => ({
        providers: [
          { id: 'pa', url: `https://127.0.0.1:${a?.port}/v1` },
          { id: 'pb', url: b?.url },
        ],
      }),
    });
    set.a.onConnection = (socket) => socket.once('data', () => socket.end('HTTP/1.1 400 No\r\n\r\n'));
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    expect(
      (await set.gateway.metrics()).sum('llm_proxy_requests_total', { upstream: 'a', result: 'net_err' }),
    ).toBe(1);
  });

  it('a request timeout before the first byte', async () => {
    const set = await stage({
      upstreams: 2,
      upstream: (i) => (i === 0 ? { request_timeout: 'PT0.1S' } : {}),
    });
    set.a.next(() => {});
    const answer = await set.chat().end();
    expect(answer.header('x-llm-proxy-upstream')).toBe('b');
    expect(
      (await set.gateway.metrics()).sum('llm_proxy_requests_total', { upstream: 'a', result: 'net_err' }),
    ).toBe(1);
    expect(set.a.last.aborted).toBe(true);
  });

  it('a redirect is not followed and the key travels nowhere', async () => {
    const set = await stage({ upstreams: 2 });
    set.a.next((_r, answer) => answer.send(307, '', { location: `${set.b.url}/stolen` }));
    await set.chat().end();
    expect(set.b.requests.map(({ target }) => target)).toEqual(['/v1/chat/completions']);
  });

  it('goes on with an earlier upstream that became free', async () => {
    const set = await stage({ upstreams: 2, upstream: { max_concurrency: 1 } });
    set.a.next((_r, answer) => setHolder(answer));
    let release = async (): Promise<void> => {};
    const setHolder = (answer: Parameters<Script>[1]): void => {
      release = () => answer.json(200, completion());
    };
    const holder = set.chat();
    await set.a.chat(0);
    set.b.next(async (_r, answer) => {
      await release();
      await holder.end();
      await answer.error(500);
    });
    const answer = await set.chat().end();
    expect(answer.header('x-llm-proxy-upstream')).toBe('a');
    expect(answer.header('x-llm-proxy-attempts')).toBe('2');
  });

  it('tries each upstream once', async () => {
    const set = await stage({ upstreams: 3 });
    for (const up of [set.a, set.b, set.c]) up.always((_r, answer) => answer.error(500));
    const answer = await set.chat().end();
    expect(answer.status).toBe(503);
    expect([set.a, set.b, set.c].map(({ requests }) => requests.length)).toEqual([1, 1, 1]);
    const { error } = answer.json as { error: { attempts: unknown[] } };
    expect(error.attempts).toEqual(
      ['a', 'b', 'c'].map((id) => ({ upstream: id, provider: `p${id}`, result: '5xx', status: 500 })),
    );
  });

  it('leaves no socket pinned by failed answers', async () => {
    const set = await stage({ upstreams: 2 });
    set.a.always(async (_r, answer) => {
      await answer.head(500, JSON_TYPE);
      await answer.write('x'.repeat(100_000));
    });
    for (let i = 0; i < 20; i++) expect((await set.chat().end()).status).toBe(200);
    for (const request of set.a.requests) await request.closed;
    expect(set.a.sockets.size).toBeLessThanOrEqual(1);
  });
});

describe("what is the client's own mistake", () => {
  it.each([400, 401, 403, 404, 405, 409, 413, 418, 422, 451])('%i passes as it is', async (status) => {
    const set = await stage({ upstreams: 2, upstream: { backoff: 'PT1M', probe_interval: 'PT0S' } });
    set.a.next((_r, answer) => answer.error(status, { 'x-of': 'upstream', 'retry-after': '7' }));
    const answer = await set.chat().end();
    expect(answer.status).toBe(status);
    expect(answer.json).toEqual({
      error: { message: 'the provider says no', type: 'provider_error', param: null, code: 'p' },
    });
    expect(answer.header('x-of')).toBe('upstream');
    expect(answer.header('retry-after')).toBe('7');
    expect(set.b.requests).toEqual([]);
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_requests_total', { upstream: 'a', result: '4xx' })).toBe(1);
    expect(metrics.sum('llm_proxy_upstream_fail_streak')).toBe(0);
  });

  it('neither raises nor resets the streak', async () => {
    const set = await stage({ upstream: { backoff: 'PT0.05S', probe_interval: 'PT0S' } });
    set.a.next(
      (_r, answer) => answer.error(500),
      (_r, answer) => answer.error(400),
    );
    await set.chat().end();
    await waitUntilTaken(set);
    expect((await set.gateway.metrics()).sum('llm_proxy_upstream_fail_streak')).toBe(1);
  });
});

async function waitUntilTaken(set: Awaited<ReturnType<typeof stage>>): Promise<void> {
  let answer = await set.chat().end();
  while (answer.status === 503) answer = await set.chat().end();
  expect(answer.status).toBe(400);
}

describe('a kept connection that turns out to be closed', () => {
  it('is no failure: the request goes once more on a fresh one', async () => {
    const set = await stage({ upstreams: 2 });
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('a');
    // The next request on that connection finds it closed.
    set.a.onHead = (request: ReceivedRequest, socket) => {
      if (request.connection === 0) socket.resetAndDestroy();
    };
    const answer = await set.chat().end();
    expect(answer.status).toBe(200);
    expect(answer.header('x-llm-proxy-upstream')).toBe('a');
    expect(answer.header('x-llm-proxy-attempts')).toBe('1');
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_requests_total', { upstream: 'a', result: 'ok' })).toBe(2);
    expect(metrics.sum('llm_proxy_requests_total')).toBe(2);
    expect(set.a.connections).toBe(2);
  });

  it('is one where the provider had begun to answer, be it with an informational head', async () => {
    const set = await stage({ upstreams: 2 });
    await set.chat().end();
    set.a.next(async (_request, answer) => {
      await answer.raw('HTTP/1.1 100 Continue\r\n\r\n');
      answer.destroy();
    });
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    expect(set.a.connections).toBe(1);
  });

  it('a fresh one that closes is a failure', async () => {
    const set = await stage({ upstreams: 2 });
    set.a.onConnection = (socket) => socket.once('data', () => socket.destroy());
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    expect(set.a.connections).toBe(1);
  });

  it('reuses a connection that is alive', async () => {
    const set = await stage();
    for (let i = 0; i < 5; i++) await set.chat().end();
    set.a.next(async (_request, answer) => {
      await answer.raw('HTTP/1.1 100 Continue\r\n\r\n');
      await answer.json(200, whole);
    });
    for (let i = 0; i < 2; i++) expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('a');
    expect(set.a.connections).toBe(1);
  });
});

describe('a client that half-closes', () => {
  it('gets the whole answer or nothing', async () => {
    const set = await stage();
    const connection = connect({ port: set.gateway.port, host: '127.0.0.1', allowHalfOpen: true });
    const body = JSON.stringify({ model: 'm', messages: [] });
    let text = '';
    connection.on('data', (bytes) => (text += bytes.toString()));
    const closed = new Promise((resolve) => connection.once('close', resolve));
    connection.end(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await closed;
    expect(text === '' || text.endsWith(whole)).toBe(true);
  });
});
