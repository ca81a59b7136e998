import { brotliCompressSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { completion, DONE, delta, finish } from '../support/answers.js';
import type { ScriptedAnswer } from '../support/scripted-answer.js';
import type { Script } from '../support/scripted-upstream.js';
import { stage } from '../support/stage.js';

const JSON_TYPE = { 'content-type': 'application/json' };
const whole = JSON.stringify(completion());

describe('what is no failure', () => {
  const fine: [string, Script, string | RegExp][] = [
    ['error: null', (_r, a) => a.json(200, { error: null, choices: [] }), '{"error":null,"choices":[]}'],
    ['error: null without choices', (_r, a) => a.json(200, { error: null, x: 1 }), '{"error":null,"x":1}'],
    [
      'an error beside choices',
      (_r, a) => a.json(200, { error: { a: 1 }, choices: [] }),
      '{"error":{"a":1},"choices":[]}',
    ],
    ['no content type, JSON', (_r, a) => a.send(200, ` \n${whole}`), ` \n${whole}`],
    ['another JSON type', (_r, a) => a.send(200, whole, { 'content-type': 'application/vnd.x+json' }), whole],
    ['201', (_r, a) => a.json(201, whole), whole],
    [
      'JSON in many pieces',
      async (_r, a) => {
        await a.head(200, JSON_TYPE);
        for (const byte of whole) await a.write(byte);
        await a.end();
      },
      whole,
    ],
    [
      'JSON to the end of the connection',
      async (_r, a) => {
        await a.head(200, JSON_TYPE, 'close');
        await a.end(whole);
      },
      whole,
    ],
    [
      'an informational head before',
      async (_r, a) => {
        await a.raw('HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n');
        await a.json(200, whole);
      },
      whole,
    ],
    [
      '`100 Continue` that nobody asked for, among other informational heads',
      async (_r, a) => {
        await a.raw('HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n');
        await a.raw('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n');
        await a.json(200, whole);
      },
      whole,
    ],
    [
      '`100 Continue` byte by byte',
      async (_r, a) => {
        for (const byte of 'HTTP/1.1 100 Continue\r\n\r\n') await a.raw(byte);
        await a.json(200, whole);
      },
      whole,
    ],
    ['a head of 16 KiB', (_r, a) => a.json(200, whole, { 'x-long': 'x'.repeat(15_900) }), whole],
  ];
  it.each(fine)('%s', async (_what, script, body) => {
    const set = await stage({ upstreams: 2 });
    set.a.next(script);
    const answer = await set.chat().end();
    expect(Math.floor(answer.status / 100)).toBe(2);
    expect(answer.header('x-llm-proxy-upstream')).toBe('a');
    expect(answer.text).toEqual(body);
    expect(set.b.requests).toEqual([]);
    expect(
      (await set.gateway.metrics()).sum('llm_proxy_requests_total', { upstream: 'a', result: 'ok' }),
    ).toBe(1);
  });

  it.each([false, true])('204 (stream: %s)', async (stream) => {
    const set = await stage({ upstreams: 2 });
    set.a.next((request, answer) => {
      void answer.raw('HTTP/1.1 204 No Content\r\n\r\n');
      request.answered();
    });
    const answer = await set.chat({ stream }).end();
    expect([answer.status, answer.size, answer.ending]).toEqual([204, 0, 'complete']);
    expect(
      (await set.gateway.metrics()).sum('llm_proxy_requests_total', { upstream: 'a', result: 'ok' }),
    ).toBe(1);
  });

  it('no content type, a stream', async () => {
    const set = await stage();
    set.a.next(async (_r, answer) => {
      await answer.head(200);
      await answer.end(`\n${delta('x')}${DONE}`);
    });
    const answer = await set.stream().end();
    expect(answer.status).toBe(200);
    expect(answer.text).toContain(delta('x') + DONE);
  });

  it('a stream that ends cleanly without a byte', async () => {
    const set = await stage({ upstreams: 2 });
    set.a.next((_r, answer) => answer.sse([]));
    const answer = await set.stream().end();
    expect([answer.status, answer.text, answer.ending]).toEqual([200, '', 'complete']);
    expect(answer.header('x-llm-proxy-upstream')).toBe('a');
    expect(
      (await set.gateway.metrics()).sum('llm_proxy_requests_total', { upstream: 'a', result: 'ok' }),
    ).toBe(1);
  });

  it('a stream that ends cleanly without [DONE]', async () => {
    const set = await stage();
    set.a.next((_r, answer) => answer.sse([delta('x'), finish()]));
    const answer = await set.stream().end();
    expect([answer.text, answer.ending]).toEqual([delta('x') + finish(), 'complete']);
  });

  it.each([delta('y').trimEnd(), 'data: [DONE]', 'data: last', ': comment'])(
    'a stream that ends cleanly without its last blank line: %s',
    async (last) => {
      const set = await stage();
      set.a.next((_r, answer) => answer.sse([delta('x') + last]));
      const answer = await set.stream().end();
      expect([answer.text, answer.ending]).toEqual([delta('x') + last, 'complete']);
    },
  );

  it.each(['off', 'split'])(
    'half an event at a clean end is a break, with think_tags: %s',
    async (think_tags) => {
      const set = await stage({ provider: { think_tags } });
      for (const bytes of [delta('x') + delta('lost').slice(0, -12), delta('<x').slice(0, 9)]) {
        set.a.next((_r, answer) => answer.sse([bytes.slice(0, 20), bytes.slice(20)]));
        const answer = await set.stream().end();
        expect(answer.events.at(-1)?.json).toMatchObject({ error: { code: 'upstream_stream_interrupted' } });
        expect(answer.text).not.toContain('[DONE]');
      }
      expect((await set.gateway.metrics()).sum('llm_proxy_requests_total', { result: 'net_err' })).toBe(2);
    },
  );

  it('half an event that would be the first one fails over behind the barrier', async () => {
    const set = await stage({ upstreams: 2, upstream: { first_token_timeout: 'PT20S' } });
    set.a.next((_r, answer) => answer.sse([delta({ role: 'assistant' }), delta('lost').slice(0, -12)]));
    const answer = await set.stream().end();
    expect(answer.header('x-llm-proxy-upstream')).toBe('b');
    expect(answer.text).not.toContain('error');
  });
});

describe('answers that are coded all the same', () => {
  it.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
  ] as const)('%s passes with its content-encoding where nothing must be read', async (coding, encode) => {
    const set = await stage({ upstreams: 2 });
    const body = encode(whole);
    set.a.next((_r, answer) => answer.send(200, body, { ...JSON_TYPE, 'content-encoding': coding }));
    const answer = await set.chat().end();
    expect(answer.header('content-encoding')).toBe(coding);
    expect(answer.body.equals(body)).toBe(true);
    expect(answer.header('x-llm-proxy-upstream')).toBe('a');
  });

  it.each(['text/event-stream', 'application/json', 'text/html'])(
    'in transfer, nobody can read: %s',
    async (type) => {
      const set = await stage({ upstreams: 2 });
      const body = gzipSync(delta('x') + DONE);
      const coded = async (answer: ScriptedAnswer): Promise<void> => {
        const head = `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ntransfer-encoding: gzip, chunked\r\n\r\n`;
        await answer.raw(`${head}${body.length.toString(16)}\r\n`);
        await answer.raw(body);
        await answer.raw('\r\n0\r\n\r\n');
      };
      set.a.next((_r, answer) => coded(answer));
      const answer = await set.stream().end();
      expect(answer.header('x-llm-proxy-upstream')).toBe('b');
      const metrics = await set.gateway.metrics();
      expect(metrics.sum('llm_proxy_requests_total', { upstream: 'a', result: 'net_err' })).toBe(1);
    },
  );

  it('is not inspected for an error', async () => {
    const set = await stage({ upstreams: 2 });
    const body = gzipSync('{"error":{"message":"no"}}');
    set.a.next((_r, answer) => answer.send(200, body, { ...JSON_TYPE, 'content-encoding': 'gzip' }));
    expect((await set.chat().end()).body.equals(body)).toBe(true);
  });

  it('is decoded where think tags must be found (JSON)', async () => {
    const set = await stage({ provider: { think_tags: 'split' } });
    const body = gzipSync(JSON.stringify(completion('<think>why</think>so')));
    set.a.next((_r, answer) => answer.send(200, body, { ...JSON_TYPE, 'content-encoding': 'gzip' }));
    const answer = await set.chat().end();
    expect(answer.header('content-encoding')).toBeUndefined();
    expect(answer.json).toMatchObject({
      choices: [{ message: { content: 'so', reasoning_content: 'why' } }],
    });
  });

  it('is decoded where think tags must be found (stream)', async () => {
    const set = await stage({ provider: { think_tags: 'split' } });
    const body = gzipSync(delta('<think>why</think>so') + DONE);
    set.a.next((_r, answer) =>
      answer.sse([body.subarray(0, 11), body.subarray(11)], { 'content-encoding': 'gzip' }),
    );
    const answer = await set.stream().end();
    expect(answer.header('content-encoding')).toBeUndefined();
    expect(answer.text).toContain('"reasoning_content":"why"');
    expect(answer.text).toContain('"content":"so"');
    expect(answer.text.endsWith(DONE)).toBe(true);
  });

  it('that is broken and had to be read is a net_err', async () => {
    const set = await stage({ upstreams: 2, provider: { think_tags: 'split' } });
    set.a.next((_r, answer) => answer.send(200, whole, { ...JSON_TYPE, 'content-encoding': 'gzip' }));
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    expect(
      (await set.gateway.metrics()).sum('llm_proxy_requests_total', { upstream: 'a', result: 'net_err' }),
    ).toBe(1);
  });

  it('that decodes to more than 64 MiB and had to be read is a net_err', async () => {
    const set = await stage({ upstreams: 2, provider: { think_tags: 'split' } });
    const bomb = gzipSync(
      Buffer.concat([
        Buffer.from('{"choices":[],"x":"'),
        Buffer.alloc(65 * 1024 * 1024, 'x'),
        Buffer.from('"}'),
      ]),
    );
    set.a.next((_r, answer) => answer.send(200, bomb, { ...JSON_TYPE, 'content-encoding': 'gzip' }));
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    expect(
      (await set.gateway.metrics()).sum('llm_proxy_requests_total', { upstream: 'a', result: 'net_err' }),
    ).toBe(1);
  });
});
