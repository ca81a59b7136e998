import { describe, expect, it } from 'vitest';
import { event } from '../support/answers.js';
import type { RawAnswer } from '../support/raw-client.js';
import type { ScriptedUpstream } from '../support/scripted-upstream.js';
import { waitFor } from '../support/wait-for.js';
import { type Stage, stage, type StageOptions } from '../support/stage.js';

const post = (set: Stage, path: string, body: unknown, headers: Record<string, string> = {}): RawAnswer =>
  set.gateway.send({ path, body, headers });
const codeOf = (answer: RawAnswer): unknown => [
  answer.status,
  (answer.json['error'] as { code?: string }).code,
];
const named = (type: string, more: object = {}): string => `event: ${type}\n${event({ type, ...more })}`;
const speaking = (protocol: string, more: StageOptions = {}): Promise<Stage> =>
  stage({ ...more, provider: { protocol, ...(more.provider as object) } });

const MESSAGE =
  '{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"h\\u00e9"}],"n":1.0,"usage":{"input_tokens":7,"output_tokens":5}}';
const MESSAGE_STREAM = [
  named('message_start', { message: { id: 'msg_1', usage: { input_tokens: 7, output_tokens: 1 } } }),
  named('ping'),
  named('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'hello' } }),
  named('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } }),
  named('message_stop'),
];
const RESPONSE_STREAM = [
  named('response.created', { sequence_number: 0, response: { id: 'resp_1', error: null } }),
  named('response.output_text.delta', { sequence_number: 1, delta: 'say "sequence_number": 99' }),
  named('response.completed', {
    sequence_number: 2,
    response: { id: 'resp_1', usage: { input_tokens: 7, output_tokens: 5 } },
  }),
];

describe('the same protocol on both sides', () => {
  it('passes bytes both ways, with the model renamed and the patches merged', async () => {
    for (const [protocol, path, body] of [
      [
        'messages',
        '/v1/messages',
        '{"max_tokens":1e2, "model":"m","messages":[{"role":"user","content":"\\ud800","n":9007199254740993}]}',
      ],
      ['messages', '/v1/messages/count_tokens', '{"model":"m","messages":[]}'],
      ['responses', '/v1/responses', '{"input":"h\\u00e9","model":"m","max_output_tokens":1e2}'],
    ] as const) {
      const set = await speaking(protocol, { model: { patch: { metadata: { user_id: 'u' } } } });
      set.a.always((_r, answer) =>
        answer.json(200, MESSAGE, { 'request-id': 'req_1', 'anthropic-ratelimit-tokens-limit': '9' }),
      );
      const answer = await post(set, `${path}?beta=true`, body).end();
      expect([
        answer.status,
        answer.text,
        answer.header('request-id'),
        answer.header('anthropic-ratelimit-tokens-limit'),
      ]).toEqual([200, MESSAGE, 'req_1', '9']);
      expect(set.a.last.target).toBe(`${path}?beta=true`);
      expect(set.a.last.text).toBe(
        body.replace('"m"', '"real-a"').replace(/}$/, ',"metadata":{"user_id":"u"}}'),
      );
    }
  });

  it('passes streams byte for byte, and counts their usage', async () => {
    for (const [protocol, path, pieces] of [
      ['messages', '/v1/messages', MESSAGE_STREAM],
      ['responses', '/v1/responses', RESPONSE_STREAM],
    ] as const) {
      const set = await speaking(protocol);
      set.a.always((_r, answer) => answer.sse(pieces));
      const answer = await post(set, path, { model: 'm', stream: true }).end();
      expect([answer.text, answer.ending, answer.header('content-type')]).toEqual([
        pieces.join(''),
        'complete',
        'text/event-stream',
      ]);
      const metrics = await set.gateway.metrics();
      const tokens = (direction: string): number => metrics.sum('llm_proxy_tokens_total', { direction });
      expect([tokens('input'), tokens('output')]).toEqual([7, 5]);
    }
  });

  it('does nothing that is made for chat: no think tags, no backfill, no joining, no rule about HTML', async () => {
    const set = await speaking('messages', {
      provider: { think_tags: 'split', reasoning_field: 'reasoning_content' },
    });
    const text =
      '{"type":"message","content":"<think>a</think>b","choices":[{"message":{"content":"<think>a</think>b"}}]}';
    set.a.next((_r, answer) => answer.json(200, text));
    const body = { model: 'm', messages: [{ role: 'assistant', content: 'x', reasoning: 'y' }] };
    expect((await post(set, '/v1/messages', body).end()).text).toBe(text);
    expect(set.a.last.json['messages']).toEqual(body.messages);
    set.a.next((_r, answer) => answer.sse(MESSAGE_STREAM));
    expect((await post(set, '/v1/messages', { model: 'm' }).end()).text).toBe(MESSAGE_STREAM.join(''));
    set.a.next((_r, answer) => answer.send(200, '<html>', { 'content-type': 'text/html' }));
    expect((await post(set, '/v1/messages', { model: 'm' }).end()).text).toBe('<html>');
  });

  it('does nothing of it for chat requests either where the upstream speaks both', async () => {
    const set = await stage({
      upstream: { protocol: ['messages', 'chat-completions'] },
      provider: { think_tags: 'strip' },
    });
    set.a.next((_r, answer) =>
      answer.json(200, { choices: [{ index: 0, message: { content: '<think>a</think>b' } }] }),
    );
    const answer = await post(set, '/v1/chat/completions', { model: 'm' }).end();
    expect(answer.json['choices']).toMatchObject([{ message: { content: 'b' } }]);
    expect(set.a.last.target).toBe('/v1/chat/completions');
  });
});

describe('the key of a provider', () => {
  const sent = async (
    options: StageOptions,
    path: string,
    headers: Record<string, string> = {},
  ): Promise<string[]> => {
    const set = await stage(options);
    await post(set, path, { model: 'm' }, headers).end();
    const names = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key', 'anthropic-version'];
    return names.flatMap((name) => {
      const value = set.a.last.header(name);
      return value === undefined ? [] : [`${name}: ${value.replace(/sk-.*/, 'KEY')}`];
    });
  };
  const messages = { provider: { protocol: 'messages' } };

  it.each<[StageOptions, string, string[]]>([
    [{}, '/v1/chat/completions', ['authorization: Bearer KEY']],
    [messages, '/v1/messages', ['x-api-key: KEY', 'anthropic-version: 2023-06-01']],
    [
      { provider: { protocol: 'messages', auth: 'bearer' } },
      '/v1/messages',
      ['authorization: Bearer KEY', 'anthropic-version: 2023-06-01'],
    ],
    [{ provider: { protocol: 'responses' } }, '/v1/responses', ['authorization: Bearer KEY']],
    [{ provider: { auth: 'api-key' } }, '/v1/chat/completions', ['api-key: KEY']],
    [{ provider: { auth: 'x-goog-api-key' } }, '/v1/chat/completions', ['x-goog-api-key: KEY']],
    [{ provider: { auth: 'none' } }, '/v1/chat/completions', []],
    [{ upstream: { serves: ['embeddings'] } }, '/v1/embeddings', ['authorization: Bearer KEY']],
    [
      { upstream: { protocol: ['chat-completions', 'messages'] } },
      '/v1/messages',
      ['x-api-key: KEY', 'anthropic-version: 2023-06-01'],
    ],
    [
      { provider: { protocol: 'messages', headers: { 'Anthropic-Version': 'fixed' } } },
      '/v1/messages',
      ['x-api-key: KEY', 'anthropic-version: fixed'],
    ],
  ])('%j: %s', async (options, path, expected) => expect(await sent(options, path)).toEqual(expected));

  it('leaves the version to the client', async () => {
    const version = { 'anthropic-version': '2024-01-01', 'x-api-key': 'of-the-client' };
    expect(await sent(messages, '/v1/messages', version)).toEqual([
      'x-api-key: KEY',
      'anthropic-version: 2024-01-01',
    ]);
  });
});

describe('a failure inside of a 200', () => {
  it.each([
    ['messages', '{"type":"error","error":{"type":"overloaded_error","message":"x"}}'],
    ['messages', '{"type":"error"}'],
    ['responses', '{"id":"resp_1","status":"failed","error":{"code":"server_error"}}'],
    ['responses', '{"id":"resp_1","status":"failed","error":null}'],
    ['messages', 'stream: event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n'],
    ['responses', 'stream: data: {"type":"response.failed","response":{}}\n\n'],
  ])('of %s is one, and fails over: %s', async (protocol, text) => {
    const set = await speaking(protocol, { upstreams: 2 });
    const isStream = text.startsWith('stream: ');
    set.a.always((_r, answer) => (isStream ? answer.sse([text.slice(8)]) : answer.json(200, text)));
    set.b.always((_r, answer) => answer.json(200, '{"id":"fine","error":null}'));
    const answer = await post(set, `/v1/${protocol}`, { model: 'm', stream: isStream }).end();
    expect([answer.status, answer.text]).toEqual([200, '{"id":"fine","error":null}']);
    expect(
      (await set.gateway.metrics()).sum('llm_proxy_requests_total', { upstream: 'a', result: '5xx' }),
    ).toBe(1);
  });

  it('after the answer began passes as it is, and counts as a failure', async () => {
    const set = await speaking('messages', { upstreams: 2 });
    const pieces = [...MESSAGE_STREAM.slice(0, 3), named('error', { error: { type: 'overloaded_error' } })];
    set.a.always((_r, answer) => answer.sse(pieces));
    const answer = await post(set, '/v1/messages', { model: 'm', stream: true }).end();
    expect([answer.text, answer.ending]).toEqual([pieces.join(''), 'complete']);
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_requests_total', { upstream: 'a', result: '5xx' })).toBe(1);
    expect(set.b.requests).toHaveLength(0);
  });

  it('is told apart by its class where errors are classified, before a word of the answer came', async () => {
    const set = await speaking('messages', { upstreams: 2, provider: { errors: 'classified' } });
    set.a.always((_r, answer) =>
      answer.sse([
        ...MESSAGE_STREAM.slice(0, 2),
        named('error', { error: { type: 'rate_limit_error', message: 'slow down' } }),
      ]),
    );
    set.b.always((_r, answer) => answer.sse(MESSAGE_STREAM));
    const answer = await post(set, '/v1/messages', { model: 'm', stream: true }).end();
    expect(answer.text).toBe(MESSAGE_STREAM.join(''));
    expect(
      (await set.gateway.metrics()).sum('llm_proxy_failures_total', { upstream: 'a', class: 'rate_limited' }),
    ).toBe(1);
  });
});

describe('a stream that breaks', () => {
  const lastEvent = (answer: RawAnswer): unknown => {
    const [, name, data] = /\n\nevent: (.*)\ndata: (.*)\n\n$/.exec(`\n\n${answer.text}`) ?? [];
    return [name, JSON.parse(data ?? 'null')];
  };

  const broken = async (protocol: string, pieces: readonly string[]): Promise<RawAnswer> => {
    const set = await speaking(protocol);
    set.a.always(async (_r, answer) => {
      await answer.sseHead();
      for (const piece of pieces) await answer.write(piece);
      answer.reset();
    });
    return post(set, `/v1/${protocol}`, { model: 'm', stream: true }).end();
  };

  it('says so to a client of messages', async () => {
    const answer = await broken('messages', MESSAGE_STREAM.slice(0, 2));
    expect(lastEvent(answer)).toEqual([
      'error',
      {
        type: 'error',
        error: {
          type: 'api_error',
          code: 'upstream_stream_interrupted',
          param: null,
          message: expect.any(String),
        },
        request_id: answer.header('x-request-id'),
      },
    ]);
    expect(answer.ending).not.toBe('reset');
  });

  it.each([
    ['between events', RESPONSE_STREAM.slice(0, 2), 2],
    ['inside of one', [RESPONSE_STREAM[0]!, RESPONSE_STREAM[1]!.slice(0, -9)], 2],
    [
      'with a number cut in two',
      [RESPONSE_STREAM[0]!, 'event: x\ndata: {"sequence_num', 'ber": 4', '1, "a":1}\n\n'],
      42,
    ],
    ['before the first number', [': hello\n\n'], 0],
  ])('says so to a client of responses, with the next number: %s', async (_, pieces, next) => {
    const answer = await broken('responses', pieces);
    expect(lastEvent(answer)).toEqual([
      'error',
      {
        type: 'error',
        code: 'upstream_stream_interrupted',
        message: expect.any(String),
        param: null,
        sequence_number: next,
      },
    ]);
  });
});

describe('capabilities', () => {
  const four = (): Promise<Stage> =>
    stage({
      upstreams: 4,
      upstream: (i) => ({
        serves: [['chat'], ['embeddings'], ['images', 'rerank'], ['completions', 'audio']][i],
      }),
    });

  it('lead each request to who has them, at the same path, with bytes as they are', async () => {
    const set = await four();
    const upstreams = set as unknown as Record<string, ScriptedUpstream>;
    const cases: [string, string][] = [
      ['embeddings', 'b'],
      ['images/generations', 'c'],
      ['rerank', 'c'],
    ];
    for (const [path, id] of cases) {
      const text = '{"data":[0.10, 1e-3, -0.0],"usage":{"prompt_tokens":3,"total_tokens":3}}';
      upstreams[id]!.always((_r, answer) => answer.json(200, text));
      const answer = await post(set, `/v1/${path}`, '{"input":"\\u00e9","model":"m"}').end();
      expect([answer.text, upstreams[id]!.last.target, upstreams[id]!.last.text]).toEqual([
        text,
        `/v1/${path}`,
        `{"input":"\\u00e9","model":"real-${id}"}`,
      ]);
    }
    expect(set.a.requests).toHaveLength(0);
    expect(
      (await set.gateway.metrics()).sum('llm_proxy_tokens_total', { upstream: 'b', direction: 'input' }),
    ).toBe(3);
  });

  it('are never sent to who speaks only what is not spoken here', async () => {
    const serves = ['chat', 'embeddings', 'completions', 'images', 'rerank', 'audio'];
    const protocols = [
      ['gemini', 'bedrock'],
      ['gemini', 'chat-completions'],
    ];
    const set = await stage({ upstreams: 2, upstream: (i) => ({ protocol: protocols[i], serves }) });
    const paths = [
      'chat/completions',
      'embeddings',
      'completions',
      'images/generations',
      'rerank',
      'audio/speech',
    ];
    for (const path of paths) {
      set.b.next((_request, answer) => answer.json(200, {}));
      expect((await post(set, `/v1/${path}`, { model: 'm' }).end()).status).toBe(200);
    }
    expect([set.a.requests.length, set.b.requests.length]).toEqual([0, paths.length]);
  });

  it('are refused with 400 where nobody has them', async () => {
    const set = await stage({
      upstreams: 2,
      upstream: (i) => (i === 0 ? { protocol: 'messages' } : { serves: ['embeddings'] }),
    });
    for (const path of ['chat/completions', 'responses', 'rerank', 'audio/speech'])
      expect(codeOf(await post(set, `/v1/${path}`, { model: 'm' }).end())).toEqual([
        400,
        'unsupported_protocol',
      ]);
    expect([set.a.requests.length, set.b.requests.length]).toEqual([0, 0]);
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_rejected_total', { model: 'm', reason: 'unsupported_protocol' })).toBe(4);
    // Health has nothing to do with it.
    const list = await set.gateway.get('/v1/models');
    expect(list.json['data']).toHaveLength(1);
  });

  it('fail over among those who have them', async () => {
    const set = await stage({ upstreams: 2, upstream: { serves: ['rerank'] } });
    set.a.always((_r, answer) => answer.error(503));
    set.b.always((_r, answer) => answer.json(200, '{"results":[]}'));
    expect((await post(set, '/v1/rerank', { model: 'm' }).end()).text).toBe('{"results":[]}');
  });

  it('have no probes but those that cost nothing', async () => {
    const set = await stage({
      upstreams: 2,
      upstream: (i) => ({
        serves: [i === 0 ? 'embeddings' : 'chat'],
        backoff: 'PT1M',
        probe_interval: 'PT0.02S',
      }),
    });
    for (const upstream of [set.a, set.b]) upstream.always((_r, answer) => answer.error(500));
    await post(set, '/v1/embeddings', { model: 'm', input: 'x' }).end();
    await post(set, '/v1/chat/completions', { model: 'm' }).end();
    await waitFor(() => set.b.requests.length > 4, 'the other one was probed a few times');
    expect(set.a.requests).toHaveLength(1);
  });
});

describe('probes', () => {
  it.each([
    ['messages', '/v1/messages', { max_tokens: 4, messages: [{ role: 'user', content: '2+2=?' }] }],
    ['responses', '/v1/responses', { max_output_tokens: 16, input: '2+2=?' }],
  ])('speak %s', async (protocol, path, body) => {
    const set = await speaking(protocol, { upstream: { backoff: 'PT1M', probe_interval: 'PT0.05S' } });
    set.a.next((_r, answer) => answer.error(500));
    set.a.onProbe = (_r, answer) => answer.sse(MESSAGE_STREAM);
    await post(set, path, { model: 'm' }).end();
    await set.gateway.logged('back in the pool');
    expect([set.a.last.target, set.a.last.json]).toEqual([path, { model: 'real-a', stream: true, ...body }]);
  });
});

describe('audio', () => {
  const audio = (more: StageOptions = {}): Promise<Stage> =>
    stage({ upstream: { serves: ['audio'] }, ...more });
  const part = (name: string, value: string | Buffer, file = ''): Buffer =>
    Buffer.concat([
      Buffer.from(`--b\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`),
      Buffer.from(value as string),
      Buffer.from('\r\n'),
    ]);
  const form = (...parts: Buffer[]): Buffer => Buffer.concat([...parts, Buffer.from('--b--\r\n')]);
  const multipart = { 'content-type': 'multipart/form-data; boundary=b' };
  const wav = Buffer.from([0, 255, 13, 10, 45, 45, 128]);

  it('replaces nothing of a form but its model', async () => {
    const set = await audio({ upstreams: 2, provider: { patch: { language: 'de' } } });
    set.a.always((_r, answer) => answer.error(500));
    set.b.always((_r, answer) => answer.send(200, 'hello', { 'content-type': 'text/plain' }));
    for (const path of ['/v1/audio/transcriptions', '/v1/audio/translations']) {
      const parts = (model: string): Buffer =>
        form(part('file', wav, '; filename="a b.wav"'), part('model', model), part('prompt', 'ü'));
      const answer = await post(set, path, parts('m'), multipart).end();
      expect([answer.status, answer.text, answer.header('content-type')]).toEqual([
        200,
        'hello',
        'text/plain',
      ]);
      expect([set.b.last.target, set.b.last.header('content-type')]).toEqual([
        path,
        multipart['content-type'],
      ]);
      // Each attempt from the client's own bytes.
      expect(set.a.last.body).toEqual(parts('real-a'));
      expect(set.b.last.body).toEqual(parts('real-b'));
    }
  });

  it('refuses a form without its model, or cut off, and one that is too large', async () => {
    const set = await audio({ server: { body_limit: '1KiB' } });
    const whole = form(part('file', wav), part('model', 'm'));
    for (const body of [form(part('file', wav)), whole.subarray(0, -8), whole.subarray(0, 20)]) {
      const answer = await post(set, '/v1/audio/transcriptions', body, multipart).end();
      expect([codeOf(answer), (answer.json['error'] as { param?: string }).param]).toEqual([
        [400, 'missing_model'],
        'model',
      ]);
    }
    const large = form(part('file', 'x'.repeat(2000)), part('model', 'm'));
    expect(codeOf(await post(set, '/v1/audio/transcriptions', large, multipart).end())).toEqual([
      413,
      'request_too_large',
    ]);
    expect(codeOf(await post(set, '/v1/audio/transcriptions', { model: 'm' }).end())).toEqual([
      415,
      'unsupported_media_type',
    ]);
    expect(codeOf(await post(set, '/v1/audio/speech', whole, multipart).end())).toEqual([
      415,
      'unsupported_media_type',
    ]);
    expect(set.a.requests).toHaveLength(0);
  });

  it('pipes sound from its first byte, and cuts it where the provider does', async () => {
    const set = await audio({ upstreams: 2 });
    const more = Promise.withResolvers<void>();
    set.a.next(async (_r, answer) => {
      await answer.head(200, { 'content-type': 'audio/mpeg' });
      await answer.write(wav);
      await more.promise;
      await answer.end(wav);
    });
    const answer = post(set, '/v1/audio/speech', { model: 'm', input: 'hi', voice: 'x' });
    await answer.saw('\u0000');
    more.resolve();
    await answer.end();
    expect([answer.body, answer.header('content-type'), answer.ending]).toEqual([
      Buffer.concat([wav, wav]),
      'audio/mpeg',
      'complete',
    ]);
    expect(set.a.last.json).toEqual({ model: 'real-a', input: 'hi', voice: 'x' });
    set.a.next(async (_r, script) => {
      await script.head(200, { 'content-type': 'audio/mpeg' });
      await script.write(wav);
      script.reset();
    });
    const cut = await post(set, '/v1/audio/speech', { model: 'm' }).end();
    expect(cut.ending).not.toBe('complete');
    set.a.next((_r, script) => script.reset());
    set.b.next((_r, script) => script.send(200, wav, { 'content-type': 'audio/mpeg' }));
    expect((await post(set, '/v1/audio/speech', { model: 'm' }).end()).body).toEqual(wav);
  });
});
