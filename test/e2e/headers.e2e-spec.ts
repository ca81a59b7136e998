import { describe, expect, it } from 'vitest';
import { completion, DONE, delta } from '../support/answers.js';
import { secretKey } from '../support/secret-watch.js';
import { stage } from '../support/stage.js';

const dropped = {
  'x-api-key': 'client-key',
  'api-key': 'client-key',
  'x-goog-api-key': 'client-key',
  cookie: 'a=b',
  'accept-encoding': 'gzip, br',
  'x-llm-proxy-model': 'forged',
  'x-llm-proxy-anything': 'forged',
  forwarded: 'for=1.2.3.4',
  'x-forwarded-for': '1.2.3.4',
  'x-forwarded-proto': 'https',
  'proxy-authorization': 'Basic x',
  'proxy-connection': 'keep-alive',
  te: 'trailers',
  trailer: 'x-end',
  upgrade: 'h2c',
  'keep-alive': 'timeout=5',
  'x-named': 'by connection',
};

describe("headers of the client's request", () => {
  it('drops credentials, hop-by-hop headers, and what connection names', async () => {
    const { a, chat } = await stage();
    await chat(
      {},
      {
        headers: { ...dropped, authorization: 'Bearer client', connection: 'keep-alive, X-Named' },
      },
    ).end();
    for (const name of Object.keys(dropped)) {
      if (name === 'accept-encoding') continue;
      expect(a.last.header(name), name).toBeUndefined();
    }
    expect(a.last.header('authorization')).toBe(`Bearer ${secretKey('a')}`);
    expect(a.last.header('accept-encoding')).toBe('identity');
    expect(a.last.header('host')).toBe(`127.0.0.1:${a.port}`);
    expect(a.last.text).not.toContain('client-key');
  });

  it("does not let the client's authorization through where there is no key", async () => {
    const { a, chat } = await stage({ file: ([up]) => ({ providers: [{ id: 'pa', url: up?.url }] }) });
    await chat({}, { headers: { authorization: 'Bearer client' } }).end();
    expect(a.last.headerNames).not.toContain('authorization');
  });

  it('passes every other header, doubled ones too', async () => {
    const { a, chat } = await stage();
    await chat(
      {},
      {
        headers: {
          'openai-organization': 'org',
          'x-stainless-lang': 'js',
          'user-agent': 'test/1',
          'x-twice': ['one', 'two'],
          'x-empty': '',
          'x-latin': 'caf\u00e9',
          accept: 'text/event-stream',
        },
      },
    ).end();
    expect(a.last.header('openai-organization')).toBe('org');
    expect(a.last.header('x-stainless-lang')).toBe('js');
    expect(a.last.header('user-agent')).toBe('test/1');
    expect(a.last.header('x-twice')).toBe('one, two');
    expect(a.last.header('x-empty')).toBe('');
    expect(a.last.header('x-latin')).toBe('caf\u00e9');
    expect(a.last.header('accept')).toBe('text/event-stream');
    expect(a.last.headerNames.filter((name) => name === 'content-type')).toHaveLength(1);
    expect(a.last.headerNames.filter((name) => name === 'content-length')).toHaveLength(1);
  });

  it("sets the provider's fixed headers last", async () => {
    const { a, chat } = await stage({ provider: { headers: { 'X-Title': 'llm', 'user-agent': 'fixed' } } });
    await chat({}, { headers: { 'x-title': 'of the client', 'user-agent': 'mine' } }).end();
    expect(a.last.headerLines.filter(([name]) => name.toLowerCase() === 'x-title')).toEqual([
      ['x-title', 'llm'],
    ]);
    expect(a.last.header('user-agent')).toBe('fixed');
  });

  it('lets a fixed header win over Authorization', async () => {
    const { a, chat } = await stage({ provider: { headers: { authorization: 'Basic fixed' } } });
    await chat().end();
    expect(a.last.header('authorization')).toBe('Basic fixed');
  });
});

describe('headers of the answer', () => {
  const ofUpstream = {
    'x-end-to-end': 'yes',
    'x-twice': ['one', 'two'],
    date: 'Sun, 06 Nov 1994 08:49:37 GMT',
    'set-cookie': 'a=b',
    server: 'nginx',
    'access-control-allow-origin': '*',
    'access-control-expose-headers': 'x',
    'x-llm-proxy-upstream': 'forged',
    'x-llm-proxy-other': 'forged',
    'keep-alive': 'timeout=1',
    'proxy-authenticate': 'Basic',
    connection: 'keep-alive, x-hop',
    'x-hop': 'hop',
    'x-request-id': 'of-the-upstream',
    'x-ratelimit-remaining-requests': '7',
  };

  it.each([true, false])('pass end to end, hop by hop not (stream: %s)', async (streaming) => {
    const { a, chat } = await stage();
    a.always((_request, answer) =>
      streaming ? answer.sse([delta('x'), DONE], ofUpstream) : answer.json(200, completion(), ofUpstream),
    );
    const answer = await chat({ stream: streaming }, { headers: { 'x-request-id': 'my-id:1' } }).end();
    expect(answer.header('x-end-to-end')).toBe('yes');
    expect(answer.header('x-twice')).toBe('one, two');
    expect(answer.header('date')).toBe('Sun, 06 Nov 1994 08:49:37 GMT');
    expect(answer.header('x-ratelimit-remaining-requests')).toBe('7');
    for (const name of [
      'set-cookie',
      'server',
      'access-control-allow-origin',
      'access-control-expose-headers',
      'x-llm-proxy-other',
      'proxy-authenticate',
      'x-hop',
    ]) {
      expect(answer.header(name), name).toBeUndefined();
    }
    expect(answer.header('x-upstream-request-id')).toBe('of-the-upstream');
    expect(answer.header('x-request-id')).toBe('my-id:1');
    expect(answer.header('x-llm-proxy-model')).toBe('m');
    expect(answer.header('x-llm-proxy-upstream')).toBe('a');
    expect(answer.header('x-llm-proxy-provider')).toBe('pa');
    expect(answer.header('x-llm-proxy-attempts')).toBe('1');
    if (!streaming) return;
    expect(answer.header('cache-control')).toBe('no-cache');
    expect(answer.header('x-accel-buffering')).toBe('no');
  });

  it('stand on a passed 4xx too', async () => {
    const { a, chat } = await stage();
    a.always((_request, answer) => answer.error(422, { 'x-end-to-end': 'yes', 'set-cookie': 'a=b' }));
    const answer = await chat().end();
    expect(answer.status).toBe(422);
    expect(answer.header('x-end-to-end')).toBe('yes');
    expect(answer.header('set-cookie')).toBeUndefined();
    expect(answer.header('x-llm-proxy-upstream')).toBe('a');
  });

  it.each(['has space', 'x'.repeat(129), 'semi;colon', 'ünï', ''])(
    'replaces the request id "%s"',
    async (id) => {
      const { chat } = await stage();
      const answer = await chat({}, { headers: { 'x-request-id': id } }).end();
      expect(answer.header('x-request-id')).toMatch(/^[A-Za-z0-9._:-]{1,128}$/);
      expect(answer.header('x-request-id')).not.toBe(id);
    },
  );

  it('encodes an id that is more than visible ASCII', async () => {
    const { gateway } = await stage({
      file: ([up]) => ({
        providers: [{ id: 'pröv', url: up?.url }],
        upstreams: [{ id: '50% off', provider: 'pröv', model: 'x' }],
        models: [{ name: 'my model', upstreams: ['50% off'] }],
      }),
    });
    const answer = await gateway.send({ body: { model: 'my model' } }).end();
    expect(answer.header('x-llm-proxy-model')).toBe('my%20model');
    expect(answer.header('x-llm-proxy-upstream')).toBe('50%25%20off');
    expect(answer.header('x-llm-proxy-provider')).toBe('pr%C3%B6v');
  });

  it('counts the attempts', async () => {
    const { a, chat } = await stage({ upstreams: 2 });
    a.always((_request, answer) => answer.error(500));
    const answer = await chat().end();
    expect(answer.header('x-llm-proxy-attempts')).toBe('2');
    expect(answer.header('x-llm-proxy-upstream')).toBe('b');
  });
});

describe('our keys never reach a client', () => {
  it('are masked in headers', async () => {
    const { a, chat } = await stage();
    a.always((_request, answer) => answer.json(200, completion(), { 'x-echo': `key=${secretKey('a')};` }));
    const answer = await chat().end();
    expect(answer.header('x-echo')).toMatch(/^key=sk-[^0-9a-z]{0,3}0123;$/);
    expect(answer.rawHead).not.toContain(secretKey('a'));
  });

  it.each([400, 401, 403, 404, 418])('are masked in the body of a %i', async (status) => {
    const { a, chat } = await stage();
    a.always((_request, answer) =>
      answer.json(status, { error: { message: `Incorrect API key provided: ${secretKey('a')}`, code: 'k' } }),
    );
    const answer = await chat().end();
    expect(answer.status).toBe(status);
    expect(answer.json).toEqual({ error: { message: 'Incorrect API key provided: sk-…0123', code: 'k' } });
    expect(answer.header('content-length') ?? String(answer.size)).toBe(String(answer.size));
  });

  it('are masked whichever provider tells them', async () => {
    const { a, chat } = await stage({ upstreams: 2 });
    const both = `${secretKey('a')} ${secretKey('b')}`;
    a.always((_request, answer) => answer.json(400, { error: { message: both } }, { 'x-echo': both }));
    const answer = await chat().end();
    expect(answer.json).toEqual({ error: { message: 'sk-…0123 sk-…0123' } });
    expect(answer.header('x-echo')).toBe('sk-...0123 sk-...0123');
  });

  it('passes a 4xx as it is where no key stands in it', async () => {
    const { a, chat } = await stage();
    const body = '{ "error" : {"message":"caf\\u00e9 1.0 \ud83d\ude00"} }';
    a.always((_request, answer) => answer.send(400, body, { 'content-type': 'application/problem+json' }));
    const answer = await chat().end();
    expect(answer.header('content-type')).toBe('application/problem+json');
    expect(answer.text).toBe(body);
  });

  it('replaces a 4xx that is larger than 1 MiB', async () => {
    const { a, chat } = await stage();
    a.always((_request, answer) =>
      answer.send(400, Buffer.alloc(1024 * 1024 + 1, 'x'), { 'content-type': 'text/plain' }),
    );
    const answer = await chat().end();
    expect(answer.status).toBe(400);
    expect(answer.json).toMatchObject({ error: { message: expect.any(String), type: expect.any(String) } });
  });

  it('passes a 4xx of 1 MiB', async () => {
    const { a, chat } = await stage();
    a.always((_request, answer) =>
      answer.send(400, Buffer.alloc(1024 * 1024, 'x'), { 'content-type': 'text/plain' }),
    );
    const answer = await chat().end();
    expect([answer.status, answer.size]).toEqual([400, 1024 * 1024]);
  });
});
