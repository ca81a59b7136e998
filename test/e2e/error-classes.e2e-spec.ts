import { gzipSync } from 'node:zlib';
import { Injectable } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import {
  type AttemptFailure,
  type ErrorClassifier,
  type ExchangeInterceptor,
  RegisterErrorClassifier,
  RegisterInterceptor,
} from '../../src/contracts/index.js';
import { completion, delta, event } from '../support/answers.js';
import { keysAt, pool, refuse } from '../support/key-pool.js';
import type { Script } from '../support/scripted-upstream.js';
import { secretKey } from '../support/secret-watch.js';
import { stage, type Stage, type StageOptions } from '../support/stage.js';

const classified = (more: object = {}, options: StageOptions = {}): Promise<Stage> =>
  stage({ upstreams: 2, provider: (i) => (i === 0 ? pool('x', more) : {}), ...options });
const alone = (more: object = {}, options: StageOptions = {}): Promise<Stage> =>
  stage({ provider: pool('x', more), ...options });

async function told(set: Stage) {
  const metrics = await set.gateway.metrics();
  return {
    streak: metrics.sum('llm_proxy_upstream_fail_streak', { upstream: 'a' }),
    cooling: metrics.sum('llm_proxy_upstream_cooling_seconds', { upstream: 'a' }),
    failures: (name: string) => metrics.sum('llm_proxy_failures_total', { upstream: 'a', class: name }),
  };
}
const answeredBy = (answer: { header(name: string): string | undefined }) =>
  answer.header('x-llm-proxy-upstream');

describe('errors told apart', () => {
  it.each([
    [401, {}, 'unauthorized', 595, 600],
    [403, {}, 'unauthorized', 595, 600],
    [402, {}, 'quota_exhausted', 1795, 1800],
    [429, { code: 'insufficient_quota' }, 'quota_exhausted', 1795, 1800],
    [400, { message: 'Your credit balance is too low' }, 'quota_exhausted', 1795, 1800],
    [429, {}, 'rate_limited', 25, 30],
    [404, {}, 'model_gone', 595, 600],
    [400, { code: 'model_not_found' }, 'model_gone', 595, 600],
  ] as const)('%i %j is %s and rests %i to %i s, without a streak', async (status, error, name, from, to) => {
    const set = await alone();
    set.a.next(refuse(status, error));
    const failed = await set.chat().end();
    expect(failed.json['error']).toMatchObject({
      code: 'all_upstreams_failed',
      attempts: [{ upstream: 'a', provider: 'pa', status }],
    });
    const next = await set.chat().end();
    expect(next.json['error']).toMatchObject({ code: 'all_upstreams_cooling' });
    const seconds = Number(next.header('retry-after'));
    expect(seconds >= from && seconds <= to).toBe(true);
    const { streak, failures } = await told(set);
    expect([streak, failures(name), set.a.chats.length]).toEqual([0, 1, 1]);
  });

  it('takes no key for the words that a client wrote', async () => {
    const set = await alone({ keys: ['x', 'y'].map((id) => ({ id, value: secretKey(id) })) });
    const message = "Invalid value: 'insufficient quota'. Supported values are: 'system' and 'user'.";
    set.a.next(refuse(400, { message, type: 'invalid_request_error' }));
    const refused = await set.chat({ messages: [{ role: 'insufficient quota', content: 'x' }] }).end();
    expect([refused.status, refused.json['error']]).toMatchObject([400, { message }]);
    expect((await set.chat().end()).status).toBe(200);
    expect(keysAt(set.a)).toBe('xx');
  });

  it('takes no model for what a client wrote behind the path', async () => {
    const set = await alone();
    set.a.next(refuse(404, { code: '404', message: 'Resource not found' }));
    const path = '/v1/chat/completions?api-version=1';
    const body = { model: 'm', messages: [{ role: 'user', content: 'x' }] };
    expect((await set.gateway.send({ path, body }).end()).status).toBe(404);
    expect((await set.chat().end()).status).toBe(200);
    set.a.next(refuse(404, { message: 'The model `real` does not exist.' }));
    expect((await set.gateway.send({ path, body }).end()).status).toBe(503);
    expect((await set.chat().end()).json['error']).toMatchObject({ code: 'all_upstreams_cooling' });
  });

  it.each([
    ['/v1/messages/count_tokens', { protocol: ['chat-completions', 'messages'] }],
    ['/v1/completions', { serves: ['chat', 'completions'] }],
  ])('takes no model from chat for a path that the provider does not have: %s', async (path, upstream) => {
    const upstreams = [{ id: 'a', provider: 'pa', model: 'real', ...upstream }];
    const set = await alone({}, { file: () => ({ upstreams }) });
    set.a.next(refuse(404, { message: 'Not Found' }));
    const body = { model: 'm', messages: [{ role: 'user', content: 'x' }], prompt: 'x' };
    expect((await set.gateway.send({ path, body }).end()).status).toBe(404);
    expect((await set.chat().end()).status).toBe(200);
  });

  it('takes no key for one that a client wrote behind the path', async () => {
    const set = await alone({ keys: ['x', 'y'].map((id) => ({ id, value: secretKey(id) })) });
    set.a.next(refuse(401));
    const body = { model: 'm', messages: [{ role: 'user', content: 'x' }] };
    await set.gateway.send({ path: '/v1/chat/completions?access_token=wrong', body }).end();
    expect((await set.chat().end()).status).toBe(200);
    expect((await told(set)).failures('unauthorized')).toBe(0);
  });

  it.each([401, 403, 404])(
    'waits not long for the words of a %i: another upstream answers',
    async (status) => {
      const set = await classified({ request_timeout: 'PT5M', first_byte_timeout: 'PT5M' });
      set.a.next(async (_r, answer) => {
        await answer.head(status, { 'content-type': 'application/json' });
        await answer.write('{"error":{"message":"');
      });
      expect(answeredBy(await set.chat().end())).toBe('b');
    },
  );

  it('takes no key for a page that refuses what a request holds', async () => {
    const set = await stage({ upstreams: 2, provider: pool('x') });
    set.a.next((_r, answer) => answer.send(403, '<html>Blocked</html>', { 'content-type': 'text/html' }));
    expect(answeredBy(await set.chat().end())).toBe('b');
    expect(answeredBy(await set.chat().end())).toBe('a');
  });

  it('keeps the label of the status', async () => {
    const set = await classified();
    set.a.next(refuse(404));
    await set.chat().end();
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_requests_total', { upstream: 'a', result: '4xx' })).toBe(1);
    expect(set.gateway.messages).toContainEqual(
      expect.stringMatching(
        /returned 404 → failover \(model_gone: upstream rests PT10M; check url and model\)$/,
      ),
    );
  });

  it('never shows the client a 401 of ours', async () => {
    const set = await stage({ upstreams: 2, provider: pool('x') });
    for (const upstream of [set.a, set.b])
      upstream.always(refuse(401, { message: 'Incorrect API key provided' }));
    const answer = await set.chat().end();
    expect(answer.status).toBe(503);
    expect(answer.text).not.toContain('Incorrect');
    expect(answer.json['error']).toMatchObject({
      code: 'all_upstreams_failed',
      attempts: [
        { upstream: 'a', provider: 'pa', result: '4xx', status: 401 },
        { upstream: 'b', provider: 'pb', result: '4xx', status: 401 },
      ],
    });
  });

  it('rests only the upstream whose model is gone', async () => {
    const set = await alone(
      { backoff: 'PT1H' },
      {
        file: () => ({
          upstreams: ['a', 'a2'].map((id) => ({ id, provider: 'pa', model: id })),
          models: ['a', 'a2'].map((id) => ({ name: id, upstreams: [id] })),
        }),
      },
    );
    set.a.next(refuse(404));
    await set.chat({ model: 'a' }).end();
    expect((await set.chat({ model: 'a2' }).end()).status).toBe(200);
    const { cooling } = await told(set);
    expect(cooling).toBeGreaterThan(590);
  });

  it('asks no other key for a model that is gone', async () => {
    const set = await alone({ keys: ['x', 'y'].map((id) => ({ id, value: secretKey(id) })) });
    set.a.next(refuse(404));
    expect((await set.chat().end()).status).toBe(503);
    expect(keysAt(set.a)).toBe('x');
  });

  it.each([408, 425])('takes %i for busy: nothing rests', async (status) => {
    const set = await classified();
    set.a.next(refuse(status));
    expect(answeredBy(await set.chat().end())).toBe('b');
    expect(answeredBy(await set.chat().end())).toBe('a');
    const { streak, failures } = await told(set);
    expect([streak, failures('busy')]).toEqual([0, 1]);
  });

  it.each([400, 405, 409, 413, 415, 422, 499])('lets %i pass as it is', async (status) => {
    const set = await classified();
    set.a.next(refuse(status, { message: 'yours' }, { 'x-theirs': '1' }));
    const answer = await set.chat().end();
    expect([answer.status, answeredBy(answer), answer.header('x-theirs')]).toEqual([status, 'a', '1']);
    expect(answer.json['error']).toMatchObject({ message: 'yours' });
    expect(answer.header('x-llm-proxy-trail')).toBe(`a=${status}`);
    expect(set.b.chats).toEqual([]);
    const { streak, failures, cooling } = await told(set);
    expect([streak, cooling, failures('bad_request')]).toEqual([0, 0, 1]);
    expect(set.gateway.messages).toContainEqual(expect.stringContaining(`done result=4xx status=${status}`));
    expect(set.gateway.messages.some((text) => text.includes('failover'))).toBe(false);
  });

  it('reads a coded error, and masks what passes', async () => {
    const set = await classified();
    const body = gzipSync(JSON.stringify({ error: { message: `no ${secretKey('x')}`, code: 'x' } }));
    set.a.next((_request, answer) =>
      answer.send(400, body, { 'content-type': 'application/json', 'content-encoding': 'gzip' }),
    );
    const answer = await set.chat().end();
    expect([answer.status, answer.header('content-encoding')]).toEqual([400, undefined]);
    expect(answer.json['error']).toMatchObject({ message: expect.stringMatching(/^no sk-…/) as string });
    const limited = gzipSync(JSON.stringify({ error: { code: 'insufficient_quota' } }));
    set.a.next((_request, answer) => answer.send(429, limited, { 'content-encoding': 'gzip' }));
    await set.chat().end();
    expect((await told(set)).failures('quota_exhausted')).toBe(1);
  });

  it('goes by the status where nobody can read the coding', async () => {
    const set = await classified({ errors: { server_error: { retries: 0 } } });
    set.a.next((_request, answer) => answer.send(401, 'x', { 'content-encoding': 'magic' }));
    expect(answeredBy(await set.chat().end())).toBe('b');
    expect((await told(set)).failures('unauthorized')).toBe(1);
  });

  it('replaces an error that is too large to pass on', async () => {
    const set = await classified();
    set.a.next((_request, answer) => answer.send(400, 'x'.repeat(1024 * 1024 + 1)));
    const answer = await set.chat().end();
    expect([answer.status, (answer.json['error'] as { code: string }).code]).toEqual([
      400,
      'upstream_error_too_large',
    ]);
  });

  it('waits for no error body that does not end', async () => {
    const set = await classified();
    set.a.next(async (_request, answer) => {
      await answer.head(429, { 'content-type': 'application/json' });
      await answer.write('{"error":{"code":"insuff');
    });
    expect(answeredBy(await set.chat().end())).toBe('b');
    expect((await told(set)).failures('rate_limited')).toBe(1);
  });

  it('tells a 4xx that breaks off from one that can pass', async () => {
    const set = await classified({ errors: { server_error: { retries: 0 } } });
    const cut =
      (status: number): Script =>
      async (_request, answer) => {
        await answer.head(status, { 'content-type': 'application/json' });
        await answer.write('{"err');
        answer.destroy();
      };
    set.a.next(cut(403), cut(400));
    await set.chat().end();
    expect((await told(set)).failures('unauthorized')).toBe(1);
  });
});

describe('an error of the upstream itself', () => {
  it('is tried once more at once; a success there raises nothing', async () => {
    const set = await classified();
    set.a.next(refuse(500));
    expect(answeredBy(await set.chat().end())).toBe('a');
    const { streak, cooling, failures } = await told(set);
    expect([set.a.chats.length, streak, cooling, failures('server_error')]).toEqual([2, 0, 0, 1]);
    expect(set.gateway.messages).toContainEqual(expect.stringMatching(/upstream=a returned 500 → retry$/));
  });

  it('is tried with the next key where there is one', async () => {
    const set = await stage({ provider: pool('xyz') });
    set.a.next(refuse(500));
    await set.chat().end();
    expect(keysAt(set.a)).toBe('xy');
  });

  it('takes one step of the ladder for each request, also without a backoff', async () => {
    const set = await classified();
    set.a.always(refuse(503));
    expect(answeredBy(await set.chat().end())).toBe('b');
    const { streak, cooling, failures } = await told(set);
    expect([set.a.chats.length, streak, failures('server_error')]).toEqual([2, 1, 2]);
    expect(cooling > 0 && cooling <= 1).toBe(true);
  });

  it('is retried as often as the file says', async () => {
    const set = await classified({ errors: { server_error: { retries: 3, rest: 'PT20S' } } });
    set.a.always((_request, answer) => answer.reset());
    expect(answeredBy(await set.chat().end())).toBe('b');
    expect(set.a.chats.length).toBe(4);
    const { streak, cooling } = await told(set);
    expect(streak).toBe(1);
    expect(cooling).toBeGreaterThan(15);
  });

  it('is not tried again after a timeout', async () => {
    const set = await classified({ first_byte_timeout: 'PT0.05S' });
    set.a.always(() => {});
    expect(answeredBy(await set.stream().end())).toBe('b');
    const { streak, failures } = await told(set);
    expect([set.a.chats.length, streak, failures('server_error')]).toEqual([1, 1, 1]);
  });

  it('rests all upstreams that share the backoff', async () => {
    const set = await alone(
      { backoff: 'PT1H' },
      {
        file: () => ({
          upstreams: ['a', 'a2'].map((id) => ({ id, provider: 'pa', model: id })),
          models: ['a', 'a2'].map((id) => ({ name: id, upstreams: [id] })),
        }),
      },
    );
    set.a.next(refuse(500, {}, { 'retry-after': '30' }), refuse(500, {}, { 'retry-after': '30' }));
    await set.chat({ model: 'a' }).end();
    const other = await set.chat({ model: 'a2' }).end();
    expect(other.json['error']).toMatchObject({ code: 'all_upstreams_cooling' });
    expect(Number(other.header('retry-after'))).toBeGreaterThan(25);
  });

  it('is also an answer that breaks after it began', async () => {
    const set = await alone();
    set.a.next(async (_request, answer) => {
      await answer.sseHead();
      await answer.write(delta('half'));
      answer.destroy();
    });
    const answer = await set.stream().end();
    expect(answer.text).toContain('upstream_stream_interrupted');
    const { streak, failures } = await told(set);
    expect([streak, failures('server_error')]).toEqual([1, 1]);
  });

  it('is an error object inside a 200, unless it calls itself something else', async () => {
    const set = await classified({ errors: { server_error: { retries: 0 } } });
    set.a.next((_request, answer) => answer.json(200, { error: { message: 'Overloaded', code: 502 } }));
    expect(answeredBy(await set.chat().end())).toBe('b');
    const first = await told(set);
    expect([first.streak, first.failures('server_error')]).toEqual([1, 1]);
    const other = await classified();
    other.a.next((_request, answer) => answer.json(200, { error: { message: 'slow down', code: 429 } }));
    expect(answeredBy(await other.chat().end())).toBe('b');
    const second = await told(other);
    expect([second.streak, second.failures('rate_limited')]).toEqual([0, 1]);
  });

  it('inside a stream that is to be joined is told apart as well', async () => {
    const set = await classified();
    set.a.next((_request, answer) =>
      answer.sse([event({ error: { message: 'no', code: 'insufficient_quota' } })]),
    );
    expect(answeredBy(await set.chat().end())).toBe('b');
    expect((await told(set)).failures('quota_exhausted')).toBe(1);
  });

  it('that is the client’s own is sent as an error, not as a success', async () => {
    const set = await classified();
    set.a.next((_request, answer) => answer.json(200, { error: { message: 'yours', code: 400 } }));
    const answer = await set.chat().end();
    expect([answer.status, answeredBy(answer)]).toEqual([400, 'a']);
    expect(answer.json['error']).toMatchObject({ message: 'yours' });
  });
});

describe('an error as the first event of a stream', () => {
  const first =
    (error: object): Script =>
    (_request, answer) =>
      answer.sse([
        ': hello\n\n',
        event({ error: { message: 'says the provider', ...error } }),
        'data: [DONE]\n\n',
      ]);

  it.each([
    [{ type: 'overloaded_error' }, 'server_error', 1],
    [{ code: 'rate_limit_exceeded' }, 'rate_limited', 0],
    [{ code: 402 }, 'quota_exhausted', 0],
  ] as const)('%j fails over without a trace as %s', async (error, name, streak) => {
    const set = await classified({ errors: { server_error: { retries: 0 } } });
    set.a.next(first(error));
    const answer = await set.stream().end();
    expect([answer.status, answeredBy(answer)]).toEqual([200, 'b']);
    expect(answer.text).not.toContain('says the provider');
    const now = await told(set);
    expect([now.streak, now.failures(name)]).toEqual([streak, 1]);
  });

  it('that is the client’s own is sent as an error in JSON', async () => {
    const set = await classified();
    set.a.next(first({ code: 400 }));
    const answer = await set.stream().end();
    expect([answer.status, answer.header('content-type')]).toEqual([400, 'application/json; charset=utf-8']);
    expect(answer.json['error']).toMatchObject({ message: 'says the provider', code: 400 });
  });

  it('that finds the prompt too long goes to a larger model', async () => {
    const set = await stage({
      upstreams: 2,
      provider: pool('x'),
      upstream: (i) => ({ context_window: i === 0 ? 8000 : 128_000 }),
    });
    set.a.next(first({ code: 'context_length_exceeded' }));
    expect(answeredBy(await set.stream().end())).toBe('b');
  });
});

describe('a prompt that is too long', () => {
  const tooLong = (message = 'first'): Script => refuse(400, { code: 'context_length_exceeded', message });
  const windows = (sizes: readonly (number | undefined)[]): Promise<Stage> =>
    stage({
      upstreams: sizes.length,
      provider: pool('x'),
      upstream: (i) => (sizes[i] === undefined ? {} : { context_window: sizes[i] }),
    });

  it('goes on to a model that is known to be larger, and rests nothing', async () => {
    const set = await windows([8000, 8000, 128_000]);
    set.a.next(tooLong());
    const answer = await set.chat().end();
    expect([answeredBy(answer), answer.header('x-llm-proxy-trail')]).toEqual(['c', 'a=400,c=200']);
    expect(set.b.chats).toEqual([]);
    const { streak, cooling, failures } = await told(set);
    expect([streak, cooling, failures('context_length')]).toEqual([0, 0, 1]);
    expect(answeredBy(await set.chat().end())).toBe('a');
  });

  it.each([
    ['the larger one fails', refuse(503)],
    ['the larger one finds it too long as well', tooLong('second')],
    ['the larger one refuses it', refuse(422, { message: 'second' })],
    ['the key of the larger one is refused', refuse(401)],
  ])('gives the client the first such error when %s', async (_what, script) => {
    const set = await windows([8000, 128_000]);
    set.a.next(tooLong());
    set.b.always(script);
    const answer = await set.chat().end();
    expect([answer.status, answeredBy(answer)]).toEqual([400, 'a']);
    expect(answer.json['error']).toMatchObject({ message: 'first', code: 'context_length_exceeded' });
    expect(Number(answer.header('x-llm-proxy-attempts'))).toBe(1 + set.b.chats.length);
    expect(answer.header('x-llm-proxy-trail')?.split(',').length).toBe(1 + set.b.chats.length);
  });

  it.each([
    ['no larger one is known', [8000, undefined]],
    ['its own size is not known', [undefined, 128_000]],
    ['the others are not larger', [8000, 8000]],
  ])('passes to the client at once where %s', async (_what, sizes) => {
    const set = await windows(sizes);
    set.a.next(tooLong());
    const answer = await set.chat().end();
    expect([answer.status, answer.header('x-llm-proxy-attempts')]).toEqual([400, '1']);
    expect(set.b.chats).toEqual([]);
  });

  it('climbs from window to window', async () => {
    const set = await windows([8000, 16_000, 32_000]);
    set.a.next(tooLong());
    set.b.next(tooLong('second'));
    expect(answeredBy(await set.chat().end())).toBe('c');
  });

  it('is heard in a streamed request too', async () => {
    const set = await windows([8000, 128_000]);
    set.a.next(tooLong());
    expect(answeredBy(await set.stream().end())).toBe('b');
  });
});

describe('a classifier of a plugin', () => {
  function classifier(id: string, classify: ErrorClassifier['classify'], order?: number): new () => object {
    class TestClassifier {}
    Object.assign(TestClassifier.prototype, { classify });
    Injectable()(TestClassifier);
    RegisterErrorClassifier(order === undefined ? { id } : { id, order })(TestClassifier);
    return TestClassifier;
  }

  it('is asked first, and sees the answer', async () => {
    const seen: unknown[] = [];
    const mine = classifier('mine', ({ upstream, status, header, json, text }) => {
      seen.push([upstream.id, status, header('x-why'), json, text.length > 0]);
      return header('x-why') === 'limit' ? 'rate_limited' : undefined;
    });
    const set = await classified({}, { plugins: [mine] });
    set.a.next(refuse(400, {}, { 'x-why': 'limit' }), refuse(400));
    const first = await set.chat().end();
    expect(answeredBy(first)).toBe('b');
    expect(seen[0]).toEqual([
      'a',
      400,
      'limit',
      expect.objectContaining({ error: expect.anything() as unknown }),
      true,
    ]);
    expect((await told(set)).failures('rate_limited')).toBe(1);
  });

  it('that throws, or says nonsense, leaves it to the next', async () => {
    const bad = classifier('bad', () => {
      throw new Error('SECRET-TEXT');
    });
    const nonsense = classifier('nonsense', () => 'sunny' as never, 100);
    const last = classifier('last', () => 'busy', 900);
    const set = await classified({}, { plugins: [last, bad, nonsense] });
    set.a.next(refuse(401));
    expect(answeredBy(await set.chat().end())).toBe('b');
    expect((await told(set)).failures('busy')).toBe(1);
    const metrics = await set.gateway.metrics();
    for (const plugin of ['bad', 'nonsense'])
      expect(metrics.sum('llm_proxy_plugin_errors_total', { plugin, hook: 'classify' })).toBe(1);
    expect(JSON.stringify(set.gateway.lines)).not.toContain('SECRET-TEXT');
    expect(JSON.stringify(set.gateway.lines)).toContain('classify returned what is no class');
  });

  it('has an id of its own', async () => {
    const twice = [classifier('one', () => 'busy'), classifier('one', () => 'busy')];
    await expect(stage({ plugins: twice })).rejects.toThrow('two error classifiers are registered as "one"');
  });

  it('is not asked where errors are simple', async () => {
    let asked = 0;
    const mine = classifier('mine', () => {
      asked++;
      return 'busy';
    });
    const set = await stage({ plugins: [mine] });
    set.a.next(refuse(401));
    expect([(await set.chat().end()).status, asked]).toEqual([401, 0]);
  });
});

describe('onFailover', () => {
  it('is told the class, with simple errors too', async () => {
    const seen: AttemptFailure[] = [];
    class Watcher implements ExchangeInterceptor {
      onFailover(_exchange: unknown, _attempt: unknown, failure: AttemptFailure): void {
        seen.push(failure);
      }
    }
    Injectable()(Watcher);
    RegisterInterceptor({ id: 'watcher' })(Watcher);
    const set = await stage({
      upstreams: 2,
      provider: (i) => (i === 0 ? pool('x') : {}),
      plugins: [Watcher],
    });
    set.a.next(refuse(429, {}, { 'retry-after': '3' }));
    set.b.next((_request, answer) => answer.reset());
    await set.chat().end();
    expect(seen).toMatchObject([
      { result: '429', class: 'rate_limited', status: 429, retryAfterMs: 3000 },
      { result: 'net_err', class: 'server_error' },
    ]);
  });
});

describe('a file without pools and classes', () => {
  it('counts the classes of its failures, and nothing else is new', async () => {
    const set = await stage({ upstreams: 2 });
    set.a.next(refuse(503));
    await set.chat().end();
    set.a.next((_request, answer) => answer.json(404, completion()));
    const passed = await set.chat().end();
    expect([passed.status, answeredBy(passed)]).toEqual([404, 'a']);
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_failures_total')).toBe(1);
    expect(metrics.find('llm_proxy_key_resting_seconds')).toEqual([]);
  });
});
