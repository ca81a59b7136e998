import OpenAI, { APIError, APIUserAbortError, toFile } from 'openai';
import { describe, expect, it } from 'vitest';
import { DONE, delta, event, finish, usage } from '../support/answers.js';
import { consumer, keyOf } from '../support/consumers.js';
import { stage, type Stage, type StageOptions } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';

async function withClient(options: StageOptions = {}): Promise<{ set: Stage; client: OpenAI }> {
  const set = await stage(options);
  const client = new OpenAI({ baseURL: `${set.gateway.url}/v1`, apiKey: 'of-the-client', maxRetries: 0 });
  return { set, client };
}
const messages = [{ role: 'user' as const, content: 'hi' }];

async function failureOf(promise: Promise<unknown>): Promise<APIError> {
  const error: unknown = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(APIError);
  return error as APIError;
}

describe('the openai client', () => {
  it('gets a completion', async () => {
    const { set, client } = await withClient();
    const completion = await client.chat.completions.create({ model: 'm', messages });
    expect(completion.choices[0]?.message.content).toBe('hello');
    expect(completion.usage).toEqual(usage);
    expect(set.a.last.header('authorization')).not.toContain('of-the-client');
  });

  it('gets a stream', async () => {
    const { client } = await withClient();
    let text = '';
    for await (const chunk of await client.chat.completions.create({ model: 'm', messages, stream: true })) {
      text += chunk.choices[0]?.delta.content ?? '';
    }
    expect(text).toBe('hello');
  });

  it('gets streamed tool calls, beside think tags that are split', async () => {
    const { set, client } = await withClient({ provider: { think_tags: 'split' } });
    const call = (more: object): string => delta({ tool_calls: [{ index: 0, ...more }] });
    set.a.next((_r, answer) =>
      answer.sse([
        delta({ role: 'assistant', content: '' }),
        delta('<think>which tool'),
        delta('?</think>I will look.'),
        call({ id: 'call_1', type: 'function', function: { name: 'look', arguments: '' } }),
        call({ function: { arguments: '{"at":"<thi' } }),
        call({ function: { arguments: 'nk>"}' } }),
        finish('tool_calls'),
        DONE,
      ]),
    );
    const stream = client.chat.completions.stream({ model: 'm', messages });
    const { message, finish_reason: reason } = (await stream.finalChatCompletion()).choices[0] ?? {};
    expect(reason).toBe('tool_calls');
    expect(message?.content).toBe('I will look.');
    expect(message?.tool_calls?.[0]).toMatchObject({
      id: 'call_1',
      function: { name: 'look', arguments: '{"at":"<think>"}' },
    });
  });

  it('raises our errors with status, code and request id', async () => {
    const { set, client } = await withClient();
    const unknown = await failureOf(client.chat.completions.create({ model: 'none', messages }));
    expect([unknown.status, unknown.code, unknown.param, unknown.type]).toEqual([
      404,
      'model_not_found',
      'model',
      'invalid_request_error',
    ]);
    expect(unknown.requestID).toEqual(expect.any(String));
    set.a.next((_r, answer) => answer.error(500));
    const failed = await failureOf(client.chat.completions.create({ model: 'm', messages }));
    expect([failed.status, failed.code]).toEqual([503, 'all_upstreams_failed']);
    expect(failed.error).toMatchObject({ attempts: [{ upstream: 'a', result: '5xx', status: 500 }] });
  });

  it("raises the provider's own 4xx", async () => {
    const { set, client } = await withClient();
    set.a.next((_r, answer) => answer.error(422));
    const error = await failureOf(client.chat.completions.create({ model: 'm', messages }));
    expect([error.status, error.code]).toEqual([422, 'p']);
  });

  it('retries by our Retry-After and then succeeds', async () => {
    const { set } = await withClient({ upstream: { backoff: 'PT0.1S', probe_interval: 'PT0S' } });
    set.a.next((_r, answer) => answer.error(503));
    const client = new OpenAI({ baseURL: `${set.gateway.url}/v1`, apiKey: 'x', maxRetries: 3 });
    expect((await client.chat.completions.create({ model: 'm', messages })).choices[0]?.message.content).toBe(
      'hello',
    );
  });

  it('raises where a stream was interrupted', async () => {
    const { set, client } = await withClient();
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('half'));
      answer.destroy();
    });
    let text = '';
    const read = async (): Promise<void> => {
      for await (const chunk of await client.chat.completions.create({
        model: 'm',
        messages,
        stream: true,
      })) {
        text += chunk.choices[0]?.delta.content ?? '';
      }
    };
    const error = await failureOf(read());
    expect(error.code).toBe('upstream_stream_interrupted');
    expect(text).toBe('half');
  });

  it('aborts: the upstream request goes with it', async () => {
    const { set, client } = await withClient();
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('x'));
    });
    const stream = await client.chat.completions.create({ model: 'm', messages, stream: true });
    for await (const chunk of stream) {
      expect(chunk.choices[0]?.delta.content).toBe('x');
      stream.controller.abort();
    }
    await set.a.last.closed;
    expect(set.a.last.aborted).toBe(true);
    await waitFor(async () => (await set.gateway.inflight('a')) === 0, 'the slot came back');

    set.a.next(() => {});
    const abort = new AbortController();
    const pending = client.chat.completions.create({ model: 'm', messages }, { signal: abort.signal });
    const received = await set.a.chat(1);
    abort.abort();
    await expect(pending).rejects.toBeInstanceOf(APIUserAbortError);
    await received.closed;
  });

  it('lists and retrieves models', async () => {
    const { client } = await withClient({
      file: () => ({ models: ['m', 'org/x'].map((name) => ({ name, upstreams: ['a'] })) }),
    });
    const list = await client.models.list();
    expect(list.data.map(({ id }) => id)).toEqual(['m', 'org/x']);
    expect((await client.models.retrieve('org/x')).id).toBe('org/x');
    expect((await failureOf(client.models.retrieve('none'))).status).toBe(404);
  });

  it('gets the usage chunk', async () => {
    const { set, client } = await withClient({ provider: { think_tags: 'split' } });
    set.a.next((_r, answer) =>
      answer.sse([delta('x <thi'), finish(), event({ id: 'c', choices: [], usage }), DONE]),
    );
    const stream = await client.chat.completions.create({
      model: 'm',
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    let last: unknown;
    for await (const chunk of stream) last = chunk.usage;
    expect(last).toEqual(usage);
  });
});

describe('the openai client with the key of a consumer', () => {
  const SERVES = ['chat', 'embeddings', 'images', 'audio', 'completions'];
  async function ofConsumer(
    name: string,
    protocol = 'chat-completions',
  ): Promise<{ set: Stage; client: OpenAI }> {
    const consumers = [consumer('red'), consumer('blue', { select: { models: 'never' } })];
    const set = await stage({ upstream: { serves: SERVES, protocol }, file: () => ({ consumers }) });
    const client = new OpenAI({ baseURL: `${set.gateway.url}/v1`, apiKey: keyOf(name), maxRetries: 0 });
    return { set, client };
  }

  it('chats, lists, and is told what it may not', async () => {
    const { client } = await ofConsumer('red');
    expect((await client.chat.completions.create({ model: 'm', messages })).choices[0]?.message.content).toBe(
      'hello',
    );
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['m']);
    const blue = (await ofConsumer('blue')).client;
    expect((await blue.models.list()).data).toEqual([]);
    expect((await failureOf(blue.chat.completions.create({ model: 'm', messages }))).code).toBe(
      'model_not_found',
    );
    const nobody = (await ofConsumer('nobody')).client;
    const refused = await failureOf(nobody.models.list());
    expect([refused.status, refused.code]).toEqual([401, 'invalid_api_key']);
  });

  it('embeds, draws, speaks and listens', async () => {
    const { set, client } = await ofConsumer('red');
    set.a.next((_r, answer) =>
      answer.json(200, { object: 'list', data: [{ object: 'embedding', index: 0, embedding: [0.1, -1] }] }),
    );
    const embedded = await client.embeddings.create({ model: 'm', input: 'x', encoding_format: 'float' });
    expect(embedded.data[0]?.embedding).toEqual([0.1, -1]);
    set.a.next((_r, answer) => answer.json(200, { created: 1, data: [{ b64_json: 'AA==' }] }));
    expect((await client.images.generate({ model: 'm', prompt: 'x' })).data?.[0]?.b64_json).toBe('AA==');
    const sound = Buffer.from([1, 2, 255, 0]);
    set.a.next((_r, answer) => answer.send(200, sound, { 'content-type': 'audio/mpeg' }));
    const spoken = await client.audio.speech.create({ model: 'm', input: 'hi', voice: 'alloy' });
    expect(Buffer.from(await spoken.arrayBuffer())).toEqual(sound);
    set.a.next((_r, answer) => answer.json(200, { text: 'hello' }));
    const file = await toFile(sound, 'a.wav', { type: 'audio/wav' });
    expect((await client.audio.transcriptions.create({ model: 'm', file })).text).toBe('hello');
    expect(set.a.last.text).toContain('real-a');
    expect(set.a.last.body.includes(sound)).toBe(true);
    set.a.next((_r, answer) =>
      answer.json(200, { id: 'c', object: 'text_completion', choices: [{ index: 0, text: 'x' }] }),
    );
    expect((await client.completions.create({ model: 'm', prompt: 'x' })).choices[0]?.text).toBe('x');
  });

  it('uses responses, and hears of one that broke', async () => {
    const { set, client } = await ofConsumer('red', 'responses');
    const response = { id: 'resp_1', object: 'response', status: 'completed', error: null, output: [] };
    set.a.next((_r, answer) => answer.json(200, response));
    expect((await client.responses.create({ model: 'm', input: 'x' })).id).toBe('resp_1');
    set.a.next((_r, answer) => answer.json(200, { ...response, id: 'resp_2' }));
    expect(
      (await client.responses.create({ model: 'm', input: 'x', previous_response_id: 'resp_1' })).id,
    ).toBe('resp_2');
    const named = (type: string, more: object): string => `event: ${type}\n${event({ type, ...more })}`;
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(named('response.created', { sequence_number: 0, response }));
      await answer.write(named('response.output_text.delta', { sequence_number: 1, delta: 'x' }));
      answer.reset();
    });
    const seen: unknown[] = [];
    const failure = await (async () => {
      for await (const one of await client.responses.create({ model: 'm', input: 'x', stream: true }))
        seen.push(one);
    })().then(
      () => null,
      (reason: unknown) => reason,
    );
    // Its versions differ in whether they throw or hand the event on.
    const last = failure === null ? seen.at(-1) : (failure as APIError);
    expect(JSON.stringify(last, Object.getOwnPropertyNames(last))).toContain('upstream_stream_interrupted');
  });
});
