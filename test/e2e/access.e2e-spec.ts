import { describe, expect, it } from 'vitest';
import { event } from '../support/answers.js';
import { bearer, consumer, keyOf } from '../support/consumers.js';
import type { RawAnswer, RawRequest } from '../support/raw-client.js';
import { type Stage, stage, type StageOptions } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';

const closed = (consumers: readonly object[], more: StageOptions = {}): Promise<Stage> =>
  stage({ ...more, file: (upstreams) => ({ ...more.file?.(upstreams), consumers }) });
const codeOf = (answer: RawAnswer): unknown => [
  answer.status,
  (answer.json['error'] as { code?: string }).code,
];
const messageOf = (answer: RawAnswer): unknown => (answer.json['error'] as { message?: string }).message;
const models = (set: Stage, headers: Record<string, string>, path = '/v1/models'): Promise<RawAnswer> =>
  set.gateway.send({ method: 'GET', path, headers }).end();
const names = async (set: Stage, headers: Record<string, string>, path?: string): Promise<unknown> =>
  ((await models(set, headers, path)).json['data'] as { id: string }[]).map(({ id }) => id);

describe('keys of consumers', () => {
  it('let their consumer in by any of the four headers, and reach no provider', async () => {
    const set = await closed([consumer('red')]);
    const ways = [
      bearer('red'),
      { 'x-api-key': keyOf('red') },
      { 'api-key': keyOf('red') },
      { 'x-goog-api-key': keyOf('red') },
    ];
    for (const headers of ways) {
      const named = {
        'openai-organization': 'org-1',
        'openai-project': 'proj-1',
        'x-goog-user-project': 'gcp-1',
        'openai-beta': 'x',
      };
      expect((await set.chat({}, { headers: { ...headers, ...named } }).end()).status).toBe(200);
      expect(set.a.last.header('authorization')).toContain('-a-');
      expect(set.a.last.headerNames).not.toContain('openai-organization');
      expect(set.a.last.headerNames).not.toContain('openai-project');
      expect(set.a.last.headerNames).not.toContain('x-goog-user-project');
      expect(set.a.last.header('openai-beta')).toBe('x');
      expect(set.a.last.headerLines.flat().join()).not.toContain('consumer-red');
    }
  });

  it('are asked for before the body, in words of their own', async () => {
    const set = await closed([
      consumer('red'),
      consumer('off', { disabled: true }),
      consumer('old', {}, { expires: '2020-01-01' }),
      consumer('gone', {}, { disabled: true }),
    ]);
    const cases: [Record<string, string | string[]>, string][] = [
      [{}, 'missing_api_key'],
      [{ authorization: 'Basic dTpw' }, 'missing_api_key'],
      [{ cookie: `key=${keyOf('red')}` }, 'missing_api_key'],
      [bearer('nobody'), 'invalid_api_key'],
      [{ ...bearer('nobody'), 'x-api-key': keyOf('red') }, 'invalid_api_key'],
      [{ authorization: [`Bearer ${keyOf('red')}`, `Bearer ${keyOf('red')}`] }, 'invalid_api_key'],
      [{ 'x-api-key': `${keyOf('red')},${keyOf('red')}` }, 'invalid_api_key'],
      [bearer('off'), 'consumer_disabled'],
      [bearer('old'), 'api_key_expired'],
      [bearer('gone'), 'api_key_disabled'],
    ];
    for (const [headers, code] of cases) {
      // The body never comes: who waits for it would not answer.
      const request: RawRequest = {
        path: '/v1/chat/completions',
        headers: { ...headers, 'content-length': '1000' },
        holdBody: true,
      };
      const answer = await set.gateway.send(request).end();
      expect([codeOf(answer), answer.header('www-authenticate')]).toEqual([[401, code], 'Bearer']);
    }
    expect(codeOf(await set.gateway.send({ path: `/v1/chat/completions?key=${keyOf('red')}`, body: {} }).end())).toEqual([401, 'missing_api_key']); // prettier-ignore
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_rejected_total', { reason: 'unauthorized', model: '' })).toBe(
      cases.length + 1,
    );
    expect(set.a.requests).toHaveLength(0);
  });

  it('are judged anew for each request of a connection', async () => {
    const set = await closed([consumer('red')]);
    const connection = set.gateway.connect();
    const statuses: number[] = [];
    for (const headers of [bearer('red'), {}, bearer('nobody'), bearer('red')]) {
      const answer = connection.send({
        body: { model: 'm', messages: [] },
        headers: { connection: 'keep-alive', ...headers },
      });
      statuses.push((await answer.end()).status);
    }
    expect(statuses).toEqual([200, 401, 401, 200]);
  });

  it('that are none let nobody in where the list is empty', async () => {
    const set = await closed([]);
    expect(codeOf(await set.chat().end())).toEqual([401, 'missing_api_key']);
    expect(codeOf(await set.chat({}, { headers: bearer('red') }).end())).toEqual([401, 'invalid_api_key']);
  });
});

describe('/metrics, /healthz and /readyz', () => {
  it('are open where nothing is said', async () => {
    const set = await closed([consumer('red')]);
    for (const path of ['/metrics', '/healthz', '/readyz'])
      expect((await set.gateway.get(path)).status).toBe(200);
  });

  it('/metrics asks for its token, and for nothing else', async () => {
    const token = keyOf('metrics');
    const set = await closed([consumer('red')], { server: { metrics_token: token } });
    const ask = (headers: Record<string, string>): Promise<RawAnswer> =>
      set.gateway
        .send({ method: 'GET', path: '/metrics', headers: { connection: 'close', ...headers } })
        .end();
    for (const headers of [{}, bearer('red'), { 'x-api-key': token }, { authorization: `Basic ${token}` }]) {
      const answer = await ask(headers);
      expect([codeOf(answer), answer.header('www-authenticate')]).toEqual([
        [401, 'invalid_metrics_token'],
        'Bearer',
      ]);
    }
    expect((await ask({ authorization: `Bearer ${token}` })).text).toContain('llm_proxy_rejected_total');
    expect((await set.gateway.get('/healthz')).status).toBe(200);
    expect(codeOf(await set.chat({}, { headers: { authorization: `Bearer ${token}` } }).end())).toEqual([401, 'invalid_api_key']); // prettier-ignore
    // The stage itself looks at the gauges when it closes.
    set.gateway.metrics = async () => ({ find: () => [{ value: 0 }] }) as never;
  });
});

describe('routes that a caller may not use', () => {
  const routes = [
    { id: 'chat', path: '/v1', labels: { kind: 'chat' } },
    { id: 'batch', path: '/batch', labels: { kind: 'batch' }, select: { consumers: 'team!=red' } },
  ];

  it('are 403, by its own selectors or by the route', async () => {
    const consumers = [
      consumer('one', { select: { routes: 'kind=chat' } }),
      consumer('two', { labels: { team: 'red' } }),
      consumer('all'),
      consumer('key', {}, { select: { routes: 'sys/route!=batch' } }),
    ];
    const set = await closed(consumers, { file: () => ({ routes }) });
    const status = async (name: string, path: string): Promise<unknown> =>
      codeOf(await set.chat({ model: 'none' }, { path, headers: bearer(name) }).end());
    for (const name of ['one', 'two', 'key']) {
      expect(await status(name, '/batch/chat/completions')).toEqual([403, 'route_not_allowed']);
      expect(await status(name, '/v1/chat/completions')).toEqual([404, 'model_not_found']);
      expect((await models(set, bearer(name), '/batch/models')).status).toBe(403);
    }
    expect(await status('all', '/batch/chat/completions')).toEqual([404, 'model_not_found']);
    expect((await set.gateway.metrics()).sum('llm_proxy_rejected_total', { reason: 'forbidden' })).toBe(6);
  });
});

describe('models that a caller does not see', () => {
  const file = (): Record<string, unknown> => ({
    models: [
      { name: 'zeta', upstreams: ['a'], labels: { team: 'red' } },
      { name: 'Beta', upstreams: ['b'] },
      { name: 'alpha', upstreams: ['a', 'b'] },
      { name: 'off', upstreams: ['a'], disabled: true },
      { name: 'dead', upstreams: ['c'] },
    ],
  });
  const consumers = [
    consumer('blue', { select: { models: 'team notin (red)', upstreams: 'region!=eu' } }),
    consumer('all'),
  ];
  const three = (): Promise<Stage> =>
    closed(consumers, {
      upstreams: 3,
      upstream: (i) => ({ labels: i === 0 ? { region: 'eu' } : {}, disabled: i === 2 }),
      file,
    });

  it('are not listed, and the rest by code unit', async () => {
    const set = await three();
    expect(await names(set, bearer('blue'))).toEqual(['Beta', 'alpha']);
    expect(await names(set, bearer('all'))).toEqual(['Beta', 'alpha', 'zeta']);
  });

  it('answer byte for byte like those that do not exist', async () => {
    const set = await three();
    const told = async (name: string): Promise<unknown> => {
      const answer = await set.chat({ model: name }, { headers: bearer('blue') }).end();
      const head = answer.rawHead.replace(/^(x-request-id|date): .*$/gim, '$1');
      return [codeOf(answer), head, answer.text.replaceAll(`\\"${name}\\"`, '…')];
    };
    for (const name of ['zeta', 'dead', 'off', 'a', 'real-a', 'pa/real-a']) {
      const unknown = await told('q'.repeat(name.length));
      expect(unknown).toEqual([
        [404, 'model_not_found'],
        expect.any(String),
        expect.stringContaining('The model … does not exist'),
      ]);
      expect(await told(name)).toEqual(unknown);
      const one = await models(set, bearer('blue'), `/v1/models/${encodeURIComponent(name)}`);
      expect(codeOf(one)).toEqual([404, 'model_not_found']);
    }
    expect([set.a, set.b, set.c].map(({ requests }) => requests.length)).toEqual([0, 0, 0]);
    const metrics = await set.gateway.metrics();
    expect(metrics.find('llm_proxy_rejected_total').map(({ labels }) => labels['model'])).toEqual(['']);
  });

  it('leave their upstreams out of those that are seen', async () => {
    const set = await three();
    await set.chat({ model: 'alpha' }, { headers: bearer('blue') }).end();
    expect([set.a.requests.length, set.b.requests.length]).toEqual([0, 1]);
  });

  it('are no default either', async () => {
    const set = await closed(consumers, { upstreams: 3, file: () => ({ ...file(), default_model: 'zeta' }) });
    expect((await set.chat({ model: 'anything' }, { headers: bearer('all') }).end()).status).toBe(200);
    expect((await set.chat({ model: 'anything' }, { headers: bearer('blue') }).end()).status).toBe(404);
  });
});

describe('direct addressing', () => {
  it('needs the leave of the consumer too, and keeps to its upstreams', async () => {
    const consumers = [consumer('no'), consumer('yes', { direct: true }), consumer('eu', { direct: true, select: { upstreams: 'sys/upstream=b' } })]; // prettier-ignore
    const set = await closed(consumers, { upstreams: 2, server: { direct: true } });
    const ask = async (name: string): Promise<number> =>
      (await set.chat({ model: 'pa/real-a' }, { headers: bearer(name) }).end()).status;
    expect([await ask('no'), await ask('yes'), await ask('eu')]).toEqual([404, 200, 404]);
  });
});

describe('the list of models', () => {
  it('comes in the form that the headers ask for', async () => {
    const set = await closed([consumer('red'), consumer('none', { select: { models: 'never' } })]);
    const key = { 'x-api-key': keyOf('red') };
    const openai = (await models(set, bearer('red'))).json;
    expect(openai).toMatchObject({
      object: 'list',
      data: [{ id: 'm', object: 'model', owned_by: 'llm-proxy' }],
    });
    for (const headers of [key, { ...bearer('red'), 'anthropic-version': '2023-06-01' }]) {
      const list = (await models(set, headers)).json;
      expect(Object.keys(list)).toEqual(['data', 'has_more', 'first_id', 'last_id']);
      expect(list).toMatchObject({
        has_more: false,
        first_id: 'm',
        last_id: 'm',
        data: [{ type: 'model', id: 'm', display_name: 'm' }],
      });
    }
    expect((await models(set, { ...key, ...bearer('red') })).json).toHaveProperty('object');
    expect((await models(set, { 'x-api-key': keyOf('none') })).json).toEqual({
      data: [],
      has_more: false,
      first_id: null,
      last_id: null,
    });
    const one = (await models(set, key, '/v1/models/m')).json;
    expect(Object.keys(one)).toEqual(['type', 'id', 'display_name', 'created_at']);
    expect(new Date(one['created_at'] as string).getTime()).toBeGreaterThan(0);
  });

  it('takes no notice of a body', async () => {
    const set = await closed([consumer('red')]);
    const request: RawRequest = {
      method: 'GET',
      path: '/v1/models',
      headers: bearer('red'),
      body: { model: 'none' },
    };
    expect((await set.gateway.send(request).end()).json).toMatchObject({ data: [{ id: 'm' }] });
  });
});

describe('errors', () => {
  const anthropic = (answer: RawAnswer): unknown => {
    expect(answer.header('request-id')).toBe(answer.header('x-request-id'));
    const {
      type,
      error,
      request_id: id,
    } = answer.json as { type: string; error: Record<string, unknown>; request_id: string };
    expect([type, id, typeof error['message']]).toEqual(['error', answer.header('x-request-id'), 'string']);
    return [answer.status, error['type'], error['code']];
  };

  it('come in the form of the path, or of the headers where the path does not tell', async () => {
    const set = await closed([consumer('red')], { provider: { protocol: 'messages' } });
    const send = (request: RawRequest): Promise<RawAnswer> => set.gateway.send(request).end();
    const red = bearer('red');
    expect(anthropic(await send({ path: '/v1/messages', body: {} }))).toEqual([401, 'authentication_error', 'missing_api_key']);
    expect(anthropic(await send({ path: '/v1/messages', body: {}, headers: red }))).toEqual([400, 'invalid_request_error', 'missing_model']);
    expect(anthropic(await send({ path: '/v1/messages', body: '{', headers: red }))).toEqual([400, 'invalid_request_error', 'invalid_json']);
    expect(anthropic(await send({ path: '/v1/messages', body: { model: 'x' }, headers: red }))).toEqual([404, 'not_found_error', 'model_not_found']);
    expect(anthropic(await send({ path: '/v1/messages', method: 'GET', headers: red }))).toEqual([405, 'invalid_request_error', 'method_not_allowed']);
    expect(anthropic(await send({ path: '/v1/messages', body: 'x', headers: { ...red, 'content-type': 'text/plain' } }))).toEqual([415, 'invalid_request_error', 'unsupported_media_type']);
    set.a.always((_r, answer) => answer.error(500));
    const failed = await send({ path: '/v1/messages', body: { model: 'm' }, headers: red });
    expect(anthropic(failed)).toEqual([503, 'overloaded_error', 'all_upstreams_failed']);
    expect(failed.json['error']).toMatchObject({ attempts: [{ upstream: 'a', result: '5xx', status: 500 }] });
    const nowhere = { path: '/v1/nothing', headers: { 'x-api-key': 'k' } };
    expect(anthropic(await send(nowhere))).toEqual([404, 'not_found_error', 'unknown_path']);
    expect((await send({ path: '/v1/nothing', headers: { 'x-api-key': 'k', ...red } })).json['error']).toMatchObject({ type: 'invalid_request_error' });
    for (const authorization of ['Basic eDp5', '', 'Bearer ']) {
      const other = await send({ ...nowhere, headers: { ...nowhere.headers, authorization } });
      expect(anthropic(other)).toEqual([404, 'not_found_error', 'unknown_path']);
    }
    // Chat requests are OpenAI's, whatever the headers say.
    expect((await send({ path: '/v1/chat/completions', body: {}, headers: { 'x-api-key': keyOf('red') } })).json).not.toHaveProperty('request_id');
  }); // prettier-ignore
});

describe('consumers side by side', () => {
  it('have sessions of their own, though they say the same', async () => {
    const set = await closed([consumer('red'), consumer('blue')], {
      provider: { session_header: 'x-session' },
    });
    const session = async (headers: Record<string, string>): Promise<string | undefined> => {
      await set.chat({}, { headers }).end();
      return set.a.last.header('x-session');
    };
    const [red, blue, again] = [
      await session(bearer('red')),
      await session(bearer('blue')),
      await session(bearer('red')),
    ];
    expect(again).toBe(red);
    expect(blue).not.toBe(red);
    expect(red).toMatch(/^[0-9a-f]{64}$/);
  });

  it('do not get at what was issued to the other', async () => {
    const set = await closed([consumer('red'), consumer('blue')], {
      upstreams: 2,
      provider: { protocol: 'responses' },
    });
    set.a.next((_r, answer) => answer.error(500));
    set.b.next((_r, answer) =>
      answer.json(200, { id: 'resp_1', status: 'completed', error: null, output: [] }),
    );
    const ask = (name: string, body: object): Promise<RawAnswer> =>
      set.gateway
        .send({ path: '/v1/responses', body: { model: 'm', input: 'x', ...body }, headers: bearer(name) })
        .end();
    expect((await ask('red', {})).status).toBe(200);
    const before = set.a.requests.length;
    set.b.always((_r, answer) => answer.json(200, { id: 'resp_2', error: null }));
    expect((await ask('red', { previous_response_id: 'resp_1' })).status).toBe(200);
    expect(set.b.last.json['previous_response_id']).toBe('resp_1');
    expect(codeOf(await ask('blue', { previous_response_id: 'resp_1' }))).toEqual([
      404,
      'previous_response_not_found',
    ]);
    expect(codeOf(await ask('blue', { previous_response_id: 'resp_9' }))).toEqual([
      404,
      'previous_response_not_found',
    ]);
    // Who issued it is the only one who knows it: no failover.
    set.b.always((_r, answer) => answer.error(500));
    expect(codeOf(await ask('red', { previous_response_id: 'resp_2' }))).toEqual([
      503,
      'all_upstreams_failed',
    ]);
    expect(set.a.requests.length).toBe(before);
  });

  it.each([
    ['response.created', { response: { id: 'resp_1' } }],
    ['response.in_progress', { response: { id: 'resp_1' } }],
    ['response.output_item.added', { item: { id: 'i', container_id: 'resp_1' } }],
    ['response.output_text.annotation.added', { annotation: { type: 'file_citation', file_id: 'resp_1' } }],
  ])('learn an id of a stream from its first event: %s', async (type, content) => {
    const set = await closed([consumer('red')], { provider: { protocol: 'responses' } });
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(`event: ${type}\n` + event({ type, sequence_number: 0, ...content }));
    });
    const stream = set.gateway.send({
      path: '/v1/responses',
      body: { model: 'm', input: 'x', stream: true },
      headers: bearer('red'),
    });
    await stream.saw('resp_1');
    stream.leave();
    set.a.next((_r, answer) => answer.json(200, { id: 'resp_2' }));
    const next = await set.gateway
      .send({
        path: '/v1/responses',
        body: { model: 'm', previous_response_id: 'resp_1' },
        headers: bearer('red'),
      })
      .end();
    expect(next.status).toBe(200);
  });

  it('learn the ids of an answer that is too large to be held', async () => {
    const set = await closed([consumer('red'), consumer('blue')], { provider: { protocol: 'responses' } });
    const picture = 'x'.repeat(9 * 1024 * 1024);
    set.a.next((_r, answer) =>
      answer.json(200, {
        output: [
          { id: 'ig_1', type: 'image_generation_call', result: picture },
          { id: 'ci_1', type: 'code_interpreter_call', container_id: 'cntr_1' },
        ],
        id: 'resp_1',
      }),
    );
    const ask = (name: string, body: object): Promise<RawAnswer> =>
      set.gateway
        .send({ path: '/v1/responses', body: { model: 'm', input: 'x', ...body }, headers: bearer(name) })
        .end();
    const first = await ask('red', {});
    expect([first.status, first.text.length > picture.length]).toEqual([200, true]);
    set.a.always((_r, answer) => answer.json(200, { id: 'resp_2' }));
    for (const body of [
      { previous_response_id: 'resp_1' },
      { input: [{ type: 'image_generation_call', id: 'ig_1' }] },
      { tools: [{ type: 'code_interpreter', container: 'cntr_1' }] },
    ]) {
      expect((await ask('red', body)).status).toBe(200);
      expect(codeOf(await ask('blue', body))).toEqual([404, 'previous_response_not_found']);
    }
    const asked = set.a.requests.length;
    expect(codeOf(await ask('blue', { previous_response_id: ['resp_1'] }))).toEqual([400, 'invalid_id']);
    expect(set.a.requests.length).toBe(asked);
  });

  it('learn the items of a stream as they come', async () => {
    const set = await closed([consumer('red')], { provider: { protocol: 'responses' } });
    const item = { id: 'ci_1', type: 'code_interpreter_call', container_id: 'cntr_1' };
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(
        'event: response.output_item.done\n' +
          event({ type: 'response.output_item.done', sequence_number: 0, output_index: 0, item }),
      );
    });
    const body = { model: 'm', input: 'x', stream: true };
    const stream = set.gateway.send({ path: '/v1/responses', body, headers: bearer('red') });
    await stream.saw('cntr_1');
    stream.leave();
    set.a.next((_r, answer) => answer.json(200, { id: 'resp_2' }));
    const tools = [{ type: 'code_interpreter', container: 'cntr_1' }];
    const next = { path: '/v1/responses', body: { model: 'm', input: 'x', tools }, headers: bearer('red') };
    expect((await set.gateway.send(next).end()).status).toBe(200);
  });

  it('do not take each other places, nor keep their own', async () => {
    const set = await closed([consumer('red', { max_concurrency: 1 }), consumer('blue')]);
    const held = Promise.withResolvers<void>();
    set.a.next(async (_r, answer) => {
      await held.promise;
      await answer.json(200, { choices: [] });
    });
    const first = set.chat({}, { headers: bearer('red') });
    await waitFor(() => set.a.requests.length === 1, 'the first request is at the provider');
    const second = await set.chat({}, { headers: bearer('red') }).end();
    expect([codeOf(second), second.header('retry-after')]).toEqual([[429, 'consumer_busy'], '1']);
    expect((await set.chat({}, { headers: bearer('blue') }).end()).status).toBe(200);
    // What cannot be found takes no place, and one that is abandoned gives it back.
    held.resolve();
    expect((await first.end()).status).toBe(200);
    for (const model of ['none', 'none', 'm']) await set.chat({ model }, { headers: bearer('red') }).end();
    set.a.next(() => {});
    const left = set.chat({}, { headers: bearer('red') });
    await waitFor(() => set.a.last.over === false, 'the next one is at the provider');
    left.leave();
    await set.a.last.closed;
    await waitFor(
      async () => (await set.chat({}, { headers: bearer('red') }).end()).status === 200,
      'a place is free',
    );
    expect(
      (await set.gateway.metrics()).sum('llm_proxy_rejected_total', { reason: 'consumer_busy', model: 'm' }),
    ).toBeGreaterThan(0);
  });

  it('wait for a place of their own where the model has a queue', async () => {
    const queue = { size: 2, wait: 'PT20S' };
    const red = bearer('red');
    const set = await closed([consumer('red', { max_concurrency: 1 }), consumer('blue')], {
      model: { queue },
    });
    const gates: (() => void)[] = [];
    set.a.always(async (_r, answer) => {
      await new Promise<void>((resolve) => gates.push(resolve));
      await answer.json(200, { choices: [] });
    });
    const depth = async (): Promise<number> =>
      (await set.gateway.metrics()).sum('llm_proxy_queue_depth', { model: 'm' });
    const first = set.chat({ n: 1 }, { headers: red });
    await waitFor(() => gates.length === 1, 'the first one runs');
    const low = set.chat({ n: 2 }, { headers: { ...red, 'x-llm-proxy-priority': '-5' } });
    await waitFor(async () => (await depth()) === 1, 'one waits');
    await set.gateway.logged('waits for a place of its consumer');
    const high = set.chat({ n: 3 }, { headers: red });
    await waitFor(async () => (await depth()) === 2, 'two wait');
    // They count in the size of the queue.
    const full = await set.chat({}, { headers: { ...red, 'x-llm-proxy-priority': '-9' } }).end();
    expect(codeOf(full)).toEqual([503, 'queue_full']);
    // The upstream is free: the limit of the consumer is what keeps it.
    expect([messageOf(full), full.header('retry-after')]).toEqual([
      'This consumer already has 1 request running (max_concurrency), and the queue has no place left.',
      '1',
    ]);
    // Nobody else has to wait for them.
    const other = set.chat({ n: 4 }, { headers: bearer('blue') });
    await waitFor(() => gates.length === 2, 'the other consumer runs');
    gates[1]?.();
    expect((await other.end()).status).toBe(200);
    gates[0]?.();
    expect((await first.end()).status).toBe(200);
    await waitFor(() => gates.length === 3, 'the next one runs');
    expect(set.a.last.json['n']).toBe(3);
    gates[2]?.();
    expect(Number((await high.end()).header('x-llm-proxy-queue-ms'))).toBeGreaterThan(0);
    await waitFor(() => gates.length === 4, 'the last one runs');
    gates[3]?.();
    expect((await low.end()).status).toBe(200);
    expect(await depth()).toBe(0);
  });

  it('wait no longer than the queue allows, nor when they have gone', async () => {
    const red = bearer('red');
    const set = await closed([consumer('red', { max_concurrency: 1 })], {
      model: { queue: { size: 5, wait: 'PT0.2S' } },
    });
    const gate = Promise.withResolvers<void>();
    set.a.next(async (_r, answer) => {
      await gate.promise;
      await answer.json(200, { choices: [] });
    });
    const first = set.chat({}, { headers: red });
    await waitFor(() => set.a.requests.length === 1, 'the first one runs');
    const left = set.chat({}, { headers: red });
    await waitFor(
      async () => (await set.gateway.metrics()).sum('llm_proxy_queue_depth', {}) === 1,
      'it waits',
    );
    left.leave();
    const late = await set.chat({}, { headers: red }).end();
    expect(codeOf(late)).toEqual([503, 'queue_timeout']);
    expect(messageOf(late)).toBe(
      'This consumer already has 1 request running (max_concurrency), and none ended in time.',
    );
    gate.resolve();
    expect((await first.end()).status).toBe(200);
    expect((await set.chat({}, { headers: red }).end()).status).toBe(200);
    expect(set.a.requests).toHaveLength(2);
  });

  it('have quotas of their own', async () => {
    const quota = [{ requests: 1, per: 'P1D' }];
    const set = await closed([consumer('red', { quota }), consumer('blue', { quota })]);
    expect((await set.chat({}, { headers: bearer('red') }).end()).status).toBe(200);
    expect(codeOf(await set.chat({}, { headers: bearer('red') }).end())).toEqual([429, 'quota_exhausted']);
    expect((await set.chat({}, { headers: bearer('blue') }).end()).status).toBe(200);
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_quota_remaining', { scope: 'consumer', id: 'red' })).toBe(0);
  });
});

describe('what is told of consumers', () => {
  it('is counted once for each request, by what came of it', async () => {
    const set = await closed([consumer('red'), consumer('blue'), consumer('late')], {
      server: { metrics_consumers: 2 },
      upstreams: 2,
    });
    const usage = { prompt_tokens: 7, completion_tokens: 5 };
    set.a.always((_r, answer) => answer.json(200, { choices: [], usage }));
    for (const name of ['red', 'red', 'blue', 'late']) await set.chat({}, { headers: bearer(name) }).end();
    set.a.next((_r, answer) => answer.error(500));
    set.b.always((_r, answer) => answer.json(200, { choices: [] }));
    await set.chat({}, { headers: bearer('red') }).end();
    await set.chat({ model: 'none' }, { headers: bearer('red') }).end();
    await set.chat({}, { headers: { ...bearer('red'), 'content-type': 'text/plain' } }).end();
    const metrics = await set.gateway.metrics();
    const count = (labels: Record<string, string>): number =>
      metrics.sum('llm_proxy_consumer_requests_total', labels);
    expect(count({ consumer: 'red', model: 'm', result: 'ok' })).toBe(3);
    expect(count({ consumer: 'red', model: '', result: 'unknown_model' })).toBe(1);
    expect(count({ consumer: 'red', model: '', result: 'bad_request' })).toBe(1);
    expect(count({ consumer: 'blue' })).toBe(1);
    expect([count({ consumer: 'late' }), count({ consumer: 'other' })]).toEqual([0, 1]);
    const tokens = (labels: Record<string, string>): number =>
      metrics.sum('llm_proxy_consumer_tokens_total', labels);
    expect([
      tokens({ consumer: 'red', direction: 'input' }),
      tokens({ consumer: 'red', direction: 'output' }),
    ]).toEqual([14, 10]);
  });

  it('holds whoever is known and kept out, whatever was asked for', async () => {
    const set = await closed(
      [consumer('red', { select: { routes: 'sys/route!=main' } }), consumer('off', { disabled: true })],
      {
        file: () => ({
          routes: [
            { id: 'main', path: '/v1' },
            { id: 'free', path: '/free' },
          ],
        }),
      },
    );
    const statuses: number[] = [];
    for (const name of ['red', 'off', 'nobody'])
      for (const path of ['/v1/models', '/v1/models/m', '/free/models'])
        statuses.push((await models(set, bearer(name), path)).status);
    expect(statuses).toEqual([403, 403, 200, 401, 401, 401, 401, 401, 401]);
    const metrics = await set.gateway.metrics();
    const told = metrics
      .find('llm_proxy_consumer_requests_total')
      .map(({ labels, value }) => [labels, value]);
    expect(told).toEqual([
      [{ consumer: 'red', model: '', result: 'forbidden' }, 2],
      [{ consumer: 'off', model: '', result: 'unauthorized' }, 3],
    ]);
    expect(metrics.sum('llm_proxy_rejected_total', { reason: 'forbidden' })).toBe(2);
    expect(metrics.sum('llm_proxy_rejected_total', { reason: 'unauthorized' })).toBe(6);
  });

  it('stands in the line of the request', async () => {
    const set = await closed([consumer('red')], {
      upstreams: 2,
      file: () => ({ default_model: 'm', routes: [{ id: 'main', path: '/v1' }] }),
    });
    set.a.next((_r, answer) => answer.error(500));
    await set.chat({ model: 'what\never' }, { headers: bearer('red') }).end();
    const line = await set.gateway.logged('done result=ok');
    expect(line).toMatchObject({
      consumer: 'red',
      key: 'k',
      route: 'main',
      model: 'm',
      requested_model: 'what\\never',
      tried: [
        { upstream: 'a', real_model: 'real-a', result: '5xx', status: 500 },
        { upstream: 'b', real_model: 'real-b', result: 'ok' },
      ],
    });
    await set.chat({}, { headers: bearer('nobody') }).end();
    expect(await set.gateway.logged('401 invalid_api_key')).not.toHaveProperty('consumer');
  });
});

describe('an open service', () => {
  it('asks nobody for a key, and passes what clients say of accounts', async () => {
    const set = await stage();
    for (const headers of [{}, bearer('x'), { 'x-api-key': 'y' }]) {
      expect((await set.chat({}, { headers: { ...headers, 'openai-project': 'p' } }).end()).status).toBe(200);
      expect(set.a.last.header('openai-project')).toBe('p');
    }
    const metrics = await set.gateway.metrics();
    expect(metrics.find('llm_proxy_consumer_requests_total')).toEqual([]);
    const line = await set.gateway.logged('done result=ok');
    expect(['consumer', 'key', 'route', 'requested_model', 'tried'].filter((name) => name in line)).toEqual(
      [],
    );
  });
});
