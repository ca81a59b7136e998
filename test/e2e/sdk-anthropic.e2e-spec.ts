import Anthropic, { APIError } from '@anthropic-ai/sdk';
import { describe, expect, it } from 'vitest';
import { event } from '../support/answers.js';
import { consumer, keyOf } from '../support/consumers.js';
import { stage, type Stage } from '../support/stage.js';

const named = (type: string, more: object = {}): string => `event: ${type}\n${event({ type, ...more })}`;
const text = (words: string): object => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'real',
  content: [{ type: 'text', text: words }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 7, output_tokens: 5 },
});
const STREAM = [
  named('message_start', { message: { ...text(''), content: [], stop_reason: null } }),
  named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  named('ping'),
  named('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'hel' } }),
  named('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'lo' } }),
  named('content_block_stop', { index: 0 }),
  named('message_delta', {
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 5 },
  }),
  named('message_stop'),
];
const ask = { model: 'm', max_tokens: 16, messages: [{ role: 'user' as const, content: 'hi' }] };

async function withClient(
  base = '',
  options: ConstructorParameters<typeof Anthropic>[0] = { apiKey: keyOf('red') },
): Promise<{ set: Stage; client: Anthropic }> {
  const consumers = [consumer('red'), consumer('blue', { select: { models: 'never' } })];
  const models = [
    { name: 'm', upstreams: ['a'] },
    { name: 'claude', upstreams: ['a'] },
  ];
  const set = await stage({ provider: { protocol: 'messages' }, file: () => ({ consumers, models }) });
  const client = new Anthropic({
    baseURL: `${set.gateway.url}${base}`,
    authToken: null,
    maxRetries: 0,
    ...options,
  });
  return { set, client };
}

async function failureOf(promise: Promise<unknown>): Promise<APIError> {
  const error: unknown = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(APIError);
  return error as APIError;
}

describe('the Anthropic client', () => {
  // It adds /v1 by itself.
  it.each(['', '/v1'])('gets a message, from the base url "%s"', async (base) => {
    const { set, client } = await withClient(base);
    set.a.next((_r, answer) => answer.json(200, text('hello'), { 'request-id': 'req_of_the_provider' }));
    const { data, request_id: id } = await client.messages.create(ask).withResponse();
    expect(data.content).toEqual([{ type: 'text', text: 'hello' }]);
    expect(id).toBe('req_of_the_provider');
    expect(set.a.last.json).toMatchObject({ ...ask, model: 'real-a' });
    expect(set.a.last.header('x-api-key')).not.toContain('consumer');
    expect(set.a.last.header('anthropic-version')).toMatch(/^\d{4}-\d\d-\d\d$/);
  });

  it('gets a stream', async () => {
    const { set, client } = await withClient();
    set.a.next((_r, answer) => answer.sse(STREAM));
    const stream = client.messages.stream(ask);
    const message = await stream.finalMessage();
    expect(message.content).toEqual([{ type: 'text', text: 'hello' }]);
    expect(message.usage.output_tokens).toBe(5);
  });

  it('counts tokens', async () => {
    const { set, client } = await withClient();
    set.a.next((_r, answer) => answer.json(200, { input_tokens: 14 }));
    const { input_tokens: tokens } = await client.messages.countTokens({
      model: 'm',
      messages: ask.messages,
    });
    expect([tokens, set.a.last.target]).toEqual([14, '/v1/messages/count_tokens']);
  });

  it('lists models, page by page as far as it knows, and asks for one', async () => {
    const { client } = await withClient();
    const names: string[] = [];
    for await (const model of client.models.list())
      names.push(`${model.type} ${model.id} ${model.display_name}`);
    expect(names).toEqual(['model claude claude', 'model m m']);
    expect((await client.models.retrieve('m')).id).toBe('m');
    expect((await failureOf(client.models.retrieve('none'))).status).toBe(404);
  });

  it('may bring its key as a token', async () => {
    const { set, client } = await withClient('', { apiKey: null, authToken: keyOf('red') });
    set.a.next((_r, answer) => answer.json(200, text('hello')));
    expect((await client.messages.create(ask)).type).toBe('message');
    expect(set.a.last.header('authorization')).toBeUndefined();
  });

  it('raises our errors in its own classes', async () => {
    const { set, client } = await withClient();
    const typeOf = ({ error, status }: APIError): unknown => [
      status,
      (error as { error?: { type?: string } }).error?.type,
    ];
    const denied = await withClient('', { apiKey: keyOf('nobody') });
    const refused = await failureOf(denied.client.messages.create(ask));
    expect(typeOf(refused)).toEqual([401, 'authentication_error']);
    expect(refused).toBeInstanceOf(Anthropic.AuthenticationError);
    const unknown = await failureOf(client.messages.create({ ...ask, model: 'none' }));
    expect(typeOf(unknown)).toEqual([404, 'not_found_error']);
    expect(unknown.requestID).toEqual(expect.any(String));
    const hidden = await withClient('', { apiKey: keyOf('blue') });
    expect(await failureOf(hidden.client.messages.create(ask))).toBeInstanceOf(Anthropic.NotFoundError);
    set.a.always((_r, answer) => answer.error(500));
    expect(typeOf(await failureOf(client.messages.create(ask)))).toEqual([503, 'overloaded_error']);
    const own = { type: 'error', error: { type: 'invalid_request_error', message: 'max_tokens: too large' } };
    set.a.always((_r, answer) => answer.json(400, own));
    expect((await failureOf(client.messages.create(ask))).error).toEqual(own);
  });

  it('hears of a stream that broke', async () => {
    const { set, client } = await withClient();
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      for (const piece of STREAM.slice(0, 4)) await answer.write(piece);
      answer.reset();
    });
    const seen: string[] = [];
    const stream = await client.messages.create({ ...ask, stream: true });
    const failure = await failureOf(
      (async () => {
        for await (const { type } of stream) seen.push(type);
      })(),
    );
    expect(seen.at(-1)).toBe('content_block_delta');
    expect(JSON.stringify(failure.error)).toContain('upstream_stream_interrupted');
  });
});
