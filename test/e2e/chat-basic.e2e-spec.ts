import { describe, expect, it } from 'vitest';
import { completion, DONE, delta, finish } from '../support/answers.js';
import { secretKey } from '../support/secret-watch.js';
import { stage } from '../support/stage.js';

describe('a chat request', () => {
  it('goes to the upstream under its real model and comes back as it was', async () => {
    const { a, chat } = await stage();
    const answer = await chat({ temperature: 0.5 }).end();
    expect(answer.status).toBe(200);
    expect(answer.header('content-type')).toBe('application/json');
    expect(answer.text).toBe(JSON.stringify(completion()));
    expect(a.requests).toHaveLength(1);
    expect(a.last.method).toBe('POST');
    expect(a.last.target).toBe('/v1/chat/completions');
    expect(a.last.header('authorization')).toBe(`Bearer ${secretKey('a')}`);
    expect(a.last.json).toEqual({
      model: 'real-a',
      messages: [{ role: 'user', content: 'hi' }],
      temperature: 0.5,
    });
  });

  it('streams byte for byte', async () => {
    const { stream } = await stage();
    const answer = await stream().end();
    expect(answer.status).toBe(200);
    expect(answer.ending).toBe('complete');
    expect(answer.text).toBe(
      delta({ role: 'assistant', content: '' }) + delta('hel') + delta('lo') + finish() + DONE,
    );
  });

  it.each(['/chat/completions', '/v1/chat/completions/', '//v1//chat/completions', '/v1/chat//completions/'])(
    'works at %s',
    async (path) => {
      const { a, chat } = await stage();
      expect((await chat({}, { path }).end()).status).toBe(200);
      expect(a.last.target).toBe('/v1/chat/completions');
    },
  );

  it("passes the client's query string", async () => {
    const { a, chat } = await stage();
    await chat({}, { path: '/v1/chat/completions?api-version=1&x=%20y' }).end();
    expect(a.last.target).toBe('/v1/chat/completions?api-version=1&x=%20y');
  });

  it("ignores a trailing slash of the provider's url", async () => {
    const { a, chat } = await stage({
      file: ([up]) => ({ providers: [{ id: 'pa', url: `${up?.url}/` }] }),
    });
    await chat().end();
    expect(a.last.target).toBe('/v1/chat/completions');
  });

  it.each([
    ['absent', {}],
    ['empty', { key: '' }],
    ['white space', { key: '  ' }],
  ])('sends no Authorization header where the key is %s', async (_how, provider) => {
    const { a, chat } = await stage({
      file: ([up]) => ({ providers: [{ id: 'pa', url: up?.url, ...provider }] }),
    });
    await chat().end();
    expect(a.last.headerNames).not.toContain('authorization');
  });

  it.each([undefined, 'text/event-stream', '*/*'])('takes %s in accept', async (accept) => {
    const { chat } = await stage();
    expect((await chat({}, { headers: accept === undefined ? {} : { accept } }).end()).status).toBe(200);
  });

  it.each(['application/json; charset=utf-8', 'Application/JSON', 'application/json ;x=1'])(
    'takes the content type %s',
    async (contentType) => {
      const { chat } = await stage();
      expect((await chat({}, { headers: { 'content-type': contentType } }).end()).status).toBe(200);
    },
  );

  it('serves several requests of one connection, one after the other', async () => {
    const { a, gateway } = await stage();
    const connection = gateway.connect();
    for (let i = 0; i < 3; i++) {
      const answer = await connection.send({ body: { model: 'm', n: i } }).end();
      expect(answer.status).toBe(200);
      expect(a.last.json['n']).toBe(i);
    }
  });

  it('joins an event stream where the client asked for none', async () => {
    const { a, chat } = await stage();
    a.next((_request, answer) =>
      answer.sse([
        delta({ role: 'assistant', content: 'he' }),
        delta({ content: 'llo', reasoning_content: 'because' }),
        delta({
          tool_calls: [{ index: 0, id: 't1', type: 'function', function: { name: 'f', arguments: '{"a"' } }],
        }),
        delta({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }),
        finish('tool_calls'),
        'data: {"id":"c1","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}\n\n',
        DONE,
      ]),
    );
    const answer = await chat().end();
    expect(answer.header('content-type')).toMatch(/^application\/json/);
    expect(answer.json).toMatchObject({
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          finish_reason: 'tool_calls',
          message: {
            role: 'assistant',
            content: 'hello',
            reasoning_content: 'because',
            tool_calls: [{ id: 't1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }],
          },
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
    });
  });

  it('passes JSON where the client asked for a stream', async () => {
    const { a, stream } = await stage();
    a.next((_request, answer) => answer.json(200, completion('as it is')));
    const answer = await stream().end();
    expect(answer.header('content-type')).toBe('application/json');
    expect(answer.text).toBe(JSON.stringify(completion('as it is')));
  });

  it('starts each attempt again from the body of the client', async () => {
    const { a, b, chat } = await stage({
      upstreams: 2,
      upstream: (i) => (i === 0 ? { patch: { only_a: 1 } } : {}),
    });
    a.next((_request, answer) => answer.error(503));
    await chat({ temperature: 1 }).end();
    expect(a.last.json['only_a']).toBe(1);
    expect(Object.keys(b.last.json)).toEqual(['model', 'messages', 'temperature']);
  });
});
