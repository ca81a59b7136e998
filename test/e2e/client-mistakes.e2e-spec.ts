import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import supertest from 'supertest';
import { afterEach, describe, expect, it } from 'vitest';
import type { RawAnswer } from '../support/raw-client.js';
import { MESSAGES, stage, type Stage } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';

let current: Stage;
async function set(options = {}): Promise<Stage> {
  return (current = await stage(options));
}

/** The form of every error, and nothing of the framework's. */
function expectError(answer: RawAnswer, status: number, code?: string): void {
  expect(answer.status).toBe(status);
  expect(answer.header('content-type')).toMatch(/^application\/json/);
  const { error } = answer.json as { error: Record<string, unknown> };
  expect(Object.keys(answer.json)).toEqual(['error']);
  expect(error['message']).toEqual(expect.any(String));
  expect(error['type']).toEqual(expect.any(String));
  expect(error).toHaveProperty('param');
  expect(error['code']).toEqual(code ?? expect.any(String));
  expect(answer.text).not.toMatch(/statusCode|FST_|Exception|\.js:\d/);
  expect(answer.header('x-request-id')).toMatch(/^[A-Za-z0-9._:-]{1,128}$/);
}

describe("a client's mistake is answered before any slot is taken", () => {
  afterEach(() => {
    expect(current.a.requests).toEqual([]);
  });

  it.each([
    ['empty', ''],
    ['white space', '  \n'],
    ['an array', '[]'],
    ['a string', '"x"'],
    ['null', 'null'],
    ['a number', '12'],
    ['no JSON', 'model=m'],
    ['cut', '{"model":"m"'],
    ['cut in a string', '{"model":"m'],
    ['unbalanced', '{"model":"m","messages":[{]}'],
    ['without colon', '{"model" "m"}'],
    ['with a comma too much', '{"model":"m",}'],
    ['followed by something', '{"model":"m"} x'],
    ['two objects', '{"model":"m"}{"model":"m"}'],
    ['with an unquoted key', '{model:"m"}'],
    ['with single quotes', "{'model':'m'}"],
    ['NUL', '\0'],
  ])('400 invalid_json: a body that is %s', async (_what, body) => {
    const { gateway } = await set();
    expectError(await gateway.send({ method: 'POST', body }).end(), 400, 'invalid_json');
  });

  it.each([
    ['a line feed', '{"model":"a\nb"}', 'holds a control character (0x0a) that is not escaped, 1 bytes into'],
    ['NUL', '{"model":"\0"}', 'holds a control character (0x00) that is not escaped, 0 bytes into'],
    ['no escape', '{"model":"secret\\x"}', 'holds an escape that JSON does not know'],
  ])('400 invalid_json: a model that is a text with %s', async (_what, body, reason) => {
    const { gateway } = await set();
    const answer = await gateway.send({ method: 'POST', body }).end();
    expectError(answer, 400, 'invalid_json');
    expect(answer.text).toContain(reason);
    expect(answer.text).not.toContain('secret');
  });

  it.each([
    ['missing', {}],
    ['null', { model: null }],
    ['a number', { model: 1 }],
    ['an object', { model: {} }],
    ['an array', { model: ['m'] }],
    ['a boolean', { model: true }],
  ])('400 param model: the model is %s', async (_what, body) => {
    const { gateway } = await set();
    const answer = await gateway.send({ body: { messages: MESSAGES, ...body } }).end();
    expectError(answer, 400);
    expect(answer.json).toMatchObject({ error: { param: 'model' } });
  });

  it.each(['none', '', 'M', 'm ', '__proto__', 'constructor', 'toString', 'real-a', 'a'])(
    '404 model_not_found: the model is "%s"',
    async (model) => {
      const { gateway } = await set();
      expectError(await gateway.send({ body: { model, messages: MESSAGES } }).end(), 404, 'model_not_found');
    },
  );

  it.each([
    [null],
    ['text/plain'],
    ['application/x-www-form-urlencoded'],
    ['multipart/form-data; boundary=x'],
    ['application/jsonp'],
    ['application/json-patch+json'],
    ['text/json'],
    [';'],
    ['%%%'],
  ])('415: the content type %s', async (contentType) => {
    const { gateway } = await set();
    const answer = await gateway
      .send({ body: { model: 'm' }, headers: { 'content-type': contentType } })
      .end();
    expectError(answer, 415);
  });

  it('413: a body over the limit that says so', async () => {
    const { gateway } = await set({ server: { body_limit: '1KiB' } });
    const answer = await gateway.send({ body: { model: 'm', filler: 'x'.repeat(2000) } }).end();
    expectError(answer, 413);
  });

  it('413: a body over the limit that comes in chunks', async () => {
    const { gateway } = await set({ server: { body_limit: '1KiB' } });
    const connection = gateway.connect();
    const answer = connection.send({
      method: 'POST',
      holdBody: true,
      headers: { 'transfer-encoding': 'chunked' },
    });
    const piece = 'x'.repeat(400);
    connection.socket.write('12\r\n{"model":"m","f":"\r\n');
    for (let i = 0; i < 4; i++) connection.socket.write(`190\r\n${piece}\r\n`);
    connection.socket.write('0\r\n\r\n');
    expectError(await answer.end(), 413);
  });

  it('413: who sends all of a long body before it reads, on a connection of one request', async () => {
    const { gateway } = await set({ server: { body_limit: '1MiB' } });
    const bytes = 20_000_000;
    for (let round = 0; round < 5; round++) {
      const connection = gateway.connect();
      const { socket } = connection;
      const headers = { connection: 'close', 'content-length': String(bytes) };
      const answer = connection.send({ method: 'POST', holdBody: true, headers });
      socket.pause();
      const piece = Buffer.alloc(1_000_000, 'x');
      for (let sent = 0; sent < bytes; sent += piece.length)
        await new Promise<void>((resolve, reject) =>
          socket.write(piece, (error) => (error ? reject(error) : resolve())),
        );
      socket.resume();
      expectError(await answer.end(), 413);
      expect(answer.ending).toBe('complete');
    }
  });

  it('413: a coded body whose decoded size is over the limit', async () => {
    const { gateway } = await set({ server: { body_limit: '64KiB' } });
    const body = gzipSync(JSON.stringify({ model: 'm', filler: 'x'.repeat(5_000_000) }));
    expect(body.length).toBeLessThan(64 * 1024);
    expectError(await gateway.send({ body, headers: { 'content-encoding': 'gzip' } }).end(), 413);
  });

  it.each([
    '/',
    '/v1',
    '/v1/chat',
    '/v1/completion',
    '/v2/models',
    '/chat',
    '/v1/chat/completions/x',
    '/metrics/x',
    '/%',
    '/-',
  ])('404: the path %s', async (path) => {
    const { gateway } = await set();
    expectError(await gateway.get(path), 404);
    expectError(await gateway.send({ body: { model: 'm' }, path }).end(), 404);
  });

  it.each([
    ['GET', '/v1/chat/completions', 'POST'],
    ['HEAD', '/v1/chat/completions', 'POST'],
    ['PUT', '/v1/chat/completions', 'POST'],
    ['DELETE', '/chat/completions', 'POST'],
    ['PATCH', '/v1/chat/completions', 'POST'],
    ['OPTIONS', '/v1/chat/completions', 'POST'],
    ['POST', '/v1/models', 'GET'],
    ['DELETE', '/v1/models/m', 'GET'],
    ['POST', '/metrics', 'GET'],
    ['PUT', '/healthz', 'GET'],
    ['OPTIONS', '/readyz', 'GET'],
  ])('405 with Allow: %s %s', async (method, path, allowed) => {
    const { gateway } = await set();
    const answer = await gateway.send({ method, path }).end();
    expect(answer.header('allow')?.split(/, */)).toContain(allowed);
    if (method === 'HEAD') expect([answer.status, answer.text]).toEqual([405, '']);
    else expectError(answer, 405);
  });

  it.each(['gzip', 'deflate', 'br', 'zstd', 'x-gzip'])('400: broken %s', async (coding) => {
    const { gateway } = await set();
    const answer = await gateway
      .send({ body: '{"model":"m","messages":[]}', headers: { 'content-encoding': coding } })
      .end();
    expectError(answer, 400);
  });

  it('400: a gzip body cut short', async () => {
    const { gateway } = await set();
    const body = gzipSync(JSON.stringify({ model: 'm', messages: MESSAGES })).subarray(0, -9);
    expectError(await gateway.send({ body, headers: { 'content-encoding': 'gzip' } }).end(), 400);
  });

  it.each(['compress', 'gzip, gzip', 'gzip, identity, br', 'x', 'aes128gcm'])(
    '415: the coding %s',
    async (coding) => {
      const { gateway } = await set();
      const body = gzipSync(gzipSync(JSON.stringify({ model: 'm' })));
      expectError(await gateway.send({ body, headers: { 'content-encoding': coding } }).end(), 415);
    },
  );

  it('answers in the form of ours what is no HTTP', async () => {
    const { gateway } = await set();
    for (const bytes of [
      'nonsense\r\n\r\n',
      'GET / HTTP/1.1\r\nbad header\r\n\r\n',
      'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: a\r\n\r\n',
    ]) {
      const connection = gateway.connect();
      connection.socket.write(bytes);
      const answer = await connection.expect().end();
      expect(answer.status).toBe(400);
      expect(answer.json).toMatchObject({ error: { message: expect.any(String), type: expect.any(String) } });
    }
  });

  it('answers in the form of ours a head that is too large', async () => {
    const { gateway } = await set();
    const answer = await gateway
      .send({ body: { model: 'm' }, headers: { 'x-filler': 'x'.repeat(200_000) } })
      .end();
    expect(answer.status).toBe(431);
    expect(answer.json).toMatchObject({ error: { message: expect.any(String) } });
  });

  it("never lets the framework's words out, whatever the method and path", async () => {
    const { gateway } = await set();
    for (const method of ['get', 'post', 'put', 'patch', 'delete', 'options'] as const) {
      for (const path of ['/nowhere', '/v1/chat/completions', '/v1/models/x/y', '/v1/models/%E0%A4%A']) {
        const answer = await supertest(gateway.server)[method](path);
        expect(Object.keys(answer.body as object), `${method} ${path}`).toEqual(['error']);
        expect(answer.text).not.toMatch(/statusCode|Cannot |FST_/);
      }
    }
  });

  it('shows the unknown name escaped and cut', async () => {
    const { gateway } = await set();
    const answer = await gateway
      .send({ body: { model: `x\u202e\n${'y'.repeat(5000)}`, messages: [] } })
      .end();
    expectError(answer, 404, 'model_not_found');
    expect(answer.text).not.toMatch(/\u202e|y{1000}/);
  });

  it('leaves the connection usable where the body was read', async () => {
    const { gateway } = await set();
    const connection = gateway.connect();
    await connection.send({ method: 'POST', body: '[]' }).end();
    expect((await connection.send({ method: 'GET', path: '/healthz' }).end()).status).toBe(200);
  });
});

describe('a body where none belongs', () => {
  it.each([
    ['GET', '/healthz', 200],
    ['GET', '/metrics', 200],
    ['GET', '/v1/models', 200],
    ['GET', '/v1/models/none', 404],
    ['GET', '/nowhere', 404],
    ['OPTIONS', '/v1/models', 204],
  ])('is read only a little: %s %s', async (method, path, status) => {
    const { gateway } = await set({ server: { cors: ['*'] } });
    const preflight = { origin: 'https://a.b', 'access-control-request-method': 'GET' };
    const headers = { 'transfer-encoding': 'chunked', ...(method === 'OPTIONS' ? preflight : {}) };
    const connection = gateway.connect();
    const answer = connection.send({ method, path, headers });
    const chunk = Buffer.from(`10000\r\n${'a'.repeat(65536)}\r\n`);
    const { socket } = connection;
    // Without end, as fast as it is read.
    const send = () => {
      while (socket.writable && socket.write(chunk));
    };
    socket.on('drain', send);
    send();
    expect((await answer.end()).status).toBe(status);
    await waitFor(() => connection.closed, 'the connection was closed');
  });

  it('does no harm where it is small', async () => {
    const { gateway } = await set();
    const connection = gateway.connect();
    for (const path of ['/healthz', '/v1/models', '/metrics', '/nowhere', '/healthz']) {
      const answer = await connection.send({ method: 'GET', path, body: 'x'.repeat(60_000) }).end();
      expect([answer.status, answer.ending]).toEqual([path === '/nowhere' ? 404 : 200, 'complete']);
    }
  });
});

describe('a coded request body is decoded', () => {
  const codings: [string, string, (text: string) => Buffer][] = [
    ['gzip', 'gzip', gzipSync],
    ['x-gzip', 'x-gzip', gzipSync],
    ['GZIP', 'GZIP', gzipSync],
    ['deflate with zlib header', 'deflate', deflateSync],
    ['deflate without zlib header', 'deflate', deflateRawSync],
    ['br', 'br', brotliCompressSync],
    ['zstd', 'zstd', zstdCompressSync],
    ['identity', 'identity', (text) => Buffer.from(text)],
  ];
  it.each(codings)('%s', async (_name, coding, encode) => {
    const { a, gateway } = await stage();
    const text = JSON.stringify({ model: 'm', messages: MESSAGES, filler: 'xyz'.repeat(20_000) });
    const answer = await gateway.send({ body: encode(text), headers: { 'content-encoding': coding } }).end();
    expect(answer.status).toBe(200);
    expect(a.last.text).toBe(text.replace('"m"', '"real-a"'));
    expect(a.last.header('content-encoding')).toBeUndefined();
  });
});

describe('what is the business of the provider', () => {
  it.each([
    ['no messages', '{"model":"m"}'],
    ['messages that are none', '{"model":"m","messages":"x"}'],
    ['unknown keys', '{"model":"m","messages":[],"unknown":{"a":[1,2]}}'],
    ['stream that is no boolean', '{"model":"m","stream":"yes"}'],
    ['deep mistakes', '{"model":"m","messages":[{"role":tru}]}'],
    ['a BOM', '\ufeff{"model":"m"}'],
  ])('passes %s', async (_what, body) => {
    const { a, gateway } = await stage();
    a.always((_request, answer) => answer.json(200, { choices: [] }));
    expect((await gateway.send({ body }).end()).status).toBe(200);
    expect(a.requests).toHaveLength(1);
  });

  it('passes a body nested 5,000 deep', async () => {
    const { a, gateway } = await stage();
    const body = `{"model":"m","deep":${'['.repeat(5000)}${']'.repeat(5000)}}`;
    a.always((_request, answer) => answer.json(200, { choices: [] }));
    expect((await gateway.send({ body }).end()).status).toBe(200);
    expect(a.last.text).toBe(body.replace('"m"', '"real-a"'));
  });

  it('answers `expect: 100-continue`', async () => {
    const { a, gateway } = await stage();
    const connection = gateway.connect();
    const body = JSON.stringify({ model: 'm', messages: MESSAGES });
    const answer = connection.send({
      method: 'POST',
      holdBody: true,
      headers: { expect: '100-continue', 'content-length': String(body.length) },
    });
    await waitFor(() => answer.interim.includes(100), 'the service said 100');
    connection.socket.write(body);
    expect((await answer.end()).status).toBe(200);
    expect(a.last.headerNames).not.toContain('expect');
  });
});

describe('CORS', () => {
  it('is off by default', async () => {
    const { chat } = await stage();
    const answer = await chat({}, { headers: { origin: 'https://app.example' } }).end();
    expect(answer.headerLines.filter(([name]) => name.startsWith('access-control-'))).toEqual([]);
  });

  it('lets the origins of the file in, and no others', async () => {
    const { gateway, chat } = await stage({ server: { cors: ['https://app.example'] } });
    const good = await chat({}, { headers: { origin: 'https://app.example' } }).end();
    expect(good.header('access-control-allow-origin')).toBe('https://app.example');
    const shown = good.header('access-control-expose-headers')?.split(', ') ?? [];
    const ours = good.headerLines.map(([name]) => name).filter((name) => /^x-|^retry-/.test(name));
    expect(ours.length).toBeGreaterThan(3);
    expect(shown).toEqual(
      expect.arrayContaining([...ours, 'x-llm-proxy-trail', 'x-should-retry', 'retry-after']),
    );
    const elsewhere = { path: '/v1/messages', body: {}, headers: { origin: 'https://app.example' } };
    const anthropic = await gateway.send(elsewhere).end();
    expect(anthropic.header('request-id')).toBe(anthropic.header('x-request-id'));
    expect(anthropic.header('access-control-expose-headers')?.split(', ')).toContain('request-id');
    const bad = await chat({}, { headers: { origin: 'https://evil.example' } }).end();
    expect(bad.header('access-control-allow-origin')).toBeUndefined();
    const preflight = await gateway
      .send({
        method: 'OPTIONS',
        path: '/v1/chat/completions',
        headers: {
          origin: 'https://app.example',
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'authorization, content-type',
        },
      })
      .end();
    expect(preflight.status).toBe(204);
    expect(preflight.header('access-control-allow-origin')).toBe('https://app.example');
    expect(preflight.header('access-control-allow-methods')).toContain('POST');
    expect(preflight.header('access-control-allow-headers')).toMatch(/authorization/i);
  });

  it.each<Record<string, string>>([{}, { origin: 'https://app.example' }])(
    'takes an OPTIONS that is no preflight for a wrong method (%o)',
    async (headers) => {
      const { gateway } = await stage({ server: { cors: ['https://app.example'] } });
      for (const [path, allow] of [
        ['/v1/chat/completions', 'POST'],
        ['/v1/models', 'GET, HEAD'],
        ['/metrics', 'GET, HEAD'],
        ['/healthz', 'GET, HEAD'],
      ] as const) {
        const answer = await gateway.send({ method: 'OPTIONS', path, headers }).end();
        expectError(answer, 405, 'method_not_allowed');
        expect(answer.header('allow')).toBe(allow);
      }
    },
  );
});
