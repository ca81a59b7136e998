import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { describe, expect, it } from 'vitest';
import {
  type Attempt,
  type Exchange,
  type ExchangeInterceptor,
  type ExchangeOutcome,
  GatewayError,
  SseEvent,
  type StreamTransform,
} from '../../src/contracts/index.js';
import { completion, DONE, delta } from '../support/answers.js';
import { plugin, withHooks } from '../support/plugin.js';
import { stage, type Stage, type StageOptions } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

const bang = (): never => {
  throw new Error('BANG-TEXT');
};

async function expectSlotFree(set: Stage): Promise<void> {
  await waitFor(async () => (await set.gateway.inflight('a')) === 0, 'no slot was taken');
}

async function refusal(options: StageOptions): Promise<string> {
  const error: unknown = await stage(options).then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(Error);
  return (error as Error).message;
}

describe('a plugin given to createApp', () => {
  it('is called at every hook, in order', async () => {
    const calls: string[] = [];
    const hooks: ExchangeInterceptor = {
      configure: () => void calls.push('configure'),
      onRequest: ({ model, body }) => void calls.push(`onRequest ${model.name} ${body.string('model')}`),
      onAttempt: ({ upstream, number }) => void calls.push(`onAttempt ${upstream.id} ${number}`),
      onFailover: (_exchange, { upstream }, { result, status }) =>
        void calls.push(`onFailover ${upstream.id} ${result} ${status}`),
      onResponse: (_exchange, { upstream }) => (calls.push(`onResponse ${upstream.id}`), null),
      observe: () => {
        calls.push('observe');
        return { needles: null, observe: (event) => void calls.push(`saw ${event.data}`) };
      },
      onFinish: (exchange, { result, status, complete }) =>
        void calls.push(`onFinish ${exchange.attempts.length} ${result} ${status} ${complete}`),
    };
    const set = await withHooks(hooks, { upstreams: 2 });
    set.a.next((_r, answer) => answer.error(503));
    set.b.next((_r, answer) => answer.sse(['data: 1\n\n', 'data: 2\n\n']));
    expect((await set.stream().end()).text).toBe('data: 1\n\ndata: 2\n\n');
    await waitFor(() => calls.some((call) => call.startsWith('onFinish')), 'onFinish was called');
    expect(calls).toEqual([
      'configure',
      'onRequest m m',
      'onAttempt a 1',
      'onFailover a 5xx 503',
      'onAttempt b 2',
      'onResponse b',
      'observe',
      'saw 1',
      'saw 2',
      'onFinish 2 ok 200 true',
    ]);
  });

  it('runs by order, ties by id, and in reverse at the end', async () => {
    const calls: string[] = [];
    const named = (id: string, order: number) =>
      plugin(id, { onRequest: () => void calls.push(id), onFinish: () => void calls.push(`-${id}`) }, order);
    const set = await stage({
      plugins: [named('z', 100), named('b', 700), named('a', 700), named('y', 300)],
    });
    await set.chat().end();
    await waitFor(() => calls.length === 8, 'all were called');
    expect(calls).toEqual(['z', 'y', 'a', 'b', '-b', '-a', '-y', '-z']);
  });

  it('may be a module with providers of its own', async () => {
    const calls: string[] = [];
    class OwnModule {}
    Module({ providers: [plugin('own', { onRequest: () => void calls.push('own') })] })(OwnModule);
    const set = await stage({
      plugins: [
        OwnModule,
        {
          module: class Dynamic {},
          providers: [plugin('dynamic', { onRequest: () => void calls.push('dynamic') })],
        },
      ],
    });
    await set.chat().end();
    expect(calls.sort()).toEqual(['dynamic', 'own']);
  });

  it('changes the body for all attempts in onRequest, for one in onAttempt', async () => {
    const set = await withHooks(
      {
        onRequest: ({ body }: Exchange) => body.set('all', 1.5),
        onAttempt: ({ body, headers, number }: Attempt) => {
          body.set(`only_${number}`, true);
          headers.set('x-attempt', String(number));
        },
      },
      { upstreams: 2 },
    );
    set.a.next((_r, answer) => answer.error(500));
    await set.gateway.send({ body: '{"model":"m","n":1.0}' }).end();
    expect([set.a.last.text, set.b.last.text]).toEqual([
      '{"model":"real-a","n":1.0,"all":1.5,"only_1":true}',
      '{"model":"real-b","n":1.0,"all":1.5,"only_2":true}',
    ]);
    expect([set.a.last.header('x-attempt'), set.b.last.header('x-attempt')]).toEqual(['1', '2']);
  });

  it('transforms a stream and a JSON answer', async () => {
    const shout = (): StreamTransform => ({
      needles: ['hel'],
      push: (event, emit) => {
        emit(SseEvent.of('before'));
        emit(new SseEvent(Buffer.from(event.raw.toString().replace('hel', 'HEL'))));
      },
      flush: (emit) => emit(SseEvent.of('flushed')),
      whole: (answer) => answer.set('added', true),
    });
    const set = await withHooks({ onResponse: shout });
    const stream = await set.stream().end();
    expect(stream.text).toContain('data: before\n\ndata: {');
    expect(stream.text).toContain('"content":"HEL"');
    expect(stream.text).toContain('data: flushed\n\n');
    expect(stream.text.split('before')).toHaveLength(2);
    const whole = await set.chat().end();
    expect(whole.json).toMatchObject({ added: true, choices: [{ message: { content: 'hello' } }] });
  });

  it('refuses a request with an error of its own', async () => {
    const refuse = (): never => {
      throw new GatewayError({
        status: 402,
        code: 'no_budget',
        type: 'billing',
        message: 'The budget is spent.',
        headers: { 'retry-after': '60' },
      });
    };
    for (const hooks of [{ onRequest: refuse }, { onAttempt: refuse }]) {
      const set = await withHooks(hooks);
      const answer = await set.chat().end();
      expect([answer.status, answer.header('retry-after')]).toEqual([402, '60']);
      expect(answer.json).toEqual({
        error: { message: 'The budget is spent.', type: 'billing', param: null, code: 'no_budget' },
      });
      expect(set.a.requests).toEqual([]);
      await expectSlotFree(set);
    }
  });
});

describe('a refusal that cannot be sent', () => {
  const cycle: Record<string, unknown> = {};
  cycle['self'] = cycle;
  const refusals: [string, object, RegExp][] = [
    ['a team name in a header', { headers: { 'x-team': 'Команда' } }, /"x-team" was set to a text that HTTP/],
    [
      'a header that describes the body',
      { headers: { 'content-length': '3' } },
      /made by the service itself/,
    ],
    ['what JSON cannot hold', { extra: cycle }, /the extra of its GatewayError cannot be written/],
    ['a status that is no final one', { status: 101 }, /has the status 101, not 400…599/],
    ['the status of a success', { status: 204 }, /has the status 204, not 400…599/],
  ];
  const hooks = ['onRequest', 'onAttempt', 'onResponse'] as const;
  const all = refusals.flatMap(([what, options, told]) =>
    hooks.map((hook) => ({ what, options, told, hook })),
  );

  it.each(all)('$hook, $what: as any other throw, and the next request is served', async (one) => {
    let refuses = true;
    const set = await withHooks({
      [one.hook]: () => {
        if (!refuses) return null;
        const fine = { status: 403, code: 'c', type: 't', message: 'BANG-TEXT' };
        throw new GatewayError({ ...fine, ...one.options });
      },
    });
    const connection = set.gateway.connect();
    const request = { body: { model: 'm', messages: [] } };
    const refused = await connection.send(request).end();
    expect([refused.status, refused.ending]).toEqual([500, 'complete']);
    expect(refused.json).toMatchObject({ error: { code: 'plugin_failed' } });
    const line = await set.gateway.logged(`plugin test failed in ${one.hook}: `);
    expect(line.msg).toMatch(one.told);
    expect(await pluginErrors(set)).toEqual({ [`test ${one.hook}`]: 1 });
    refuses = false;
    expect((await connection.send(request).end()).status).toBe(200);
    await expectSlotFree(set);
  });

  it('of a guard of the framework: the client has an answer all the same', async () => {
    let refuses = true;
    class Guard {
      canActivate(): boolean {
        if (!refuses) return true;
        throw new GatewayError({ status: 101, code: 'c', type: 't', message: 'm' });
      }
    }
    class GuardModule {}
    Module({ providers: [plugin('test', {}), { provide: APP_GUARD, useClass: Guard }] })(GuardModule);
    const set = await stage({ plugins: [GuardModule] });
    const answer = await set.chat().end();
    expect([answer.status, answer.json]).toMatchObject([500, { error: { code: 'internal_error' } }]);
    await set.gateway.logged('unexpected error in the answer of an error');
    refuses = false;
  });
});

describe('a plugin that throws', () => {
  const broken: [string, ExchangeInterceptor][] = [
    ['onRequest', { onRequest: bang }],
    ['onRequest', { onRequest: () => Promise.reject(new Error('BANG-TEXT')) }],
    ['onAttempt', { onAttempt: bang }],
    ['onAttempt', { onAttempt: () => Promise.reject(new Error('BANG-TEXT')) }],
  ];
  it.each(broken)('in %s: plugin_failed, named in the log, no slot lost', async (hook, hooks) => {
    const set = await withHooks(hooks);
    for (let i = 0; i < 3; i++) {
      const answer = await set.chat().end();
      expect(answer.status).toBe(500);
      expect(answer.json).toMatchObject({ error: { code: 'plugin_failed' } });
      expect(answer.text).not.toContain('BANG-TEXT');
    }
    const line = await set.gateway.logged('plugin test failed');
    expect(line.msg).toContain(hook);
    expect(set.a.requests).toEqual([]);
    await expectSlotFree(set);
  });

  const transform = (more: Partial<StreamTransform>): StreamTransform => ({
    needles: null,
    push: (event, emit) => emit(event),
    flush: () => {},
    whole: () => {},
    ...more,
  });
  const laterHooks: [string, ExchangeInterceptor][] = [
    ['onResponse', { onResponse: bang }],
    ['observe', { observe: bang }],
    ['onFinish', { onFinish: bang }],
    ['onFailover', { onFailover: bang }],
    ['push', { onResponse: () => transform({ push: bang }) }],
    ['flush', { onResponse: () => transform({ flush: bang }) }],
    ['whole', { onResponse: () => transform({ whole: bang }) }],
    // FAULT: the log and the counter name "observer" instead of the plugin.
    ['observe(event)', { observe: () => ({ needles: null, observe: bang, whole: bang }) }],
  ];
  it.each(laterHooks)(
    'in %s: the service lives, no slot is lost, no text of it gets out',
    async (_hook, hooks) => {
      const set = await withHooks(hooks, { upstreams: 2 });
      set.a.next((_r, answer) => answer.error(500));
      for (const ask of [set.chat, set.stream, set.chat, set.stream]) {
        expect((await ask().end()).text).not.toContain('BANG-TEXT');
      }
      await expectSlotFree(set);
      expect(await set.gateway.inflight('b')).toBe(0);
      expect((await set.gateway.get('/healthz')).status).toBe(200);
      await set.gateway.logged('plugin test failed');
    },
  );

  // FAULT: the summary says `result=cancelled` at info, although nobody left and the stream broke.
  it('in the middle of a stream: the client is told in band, the summary is a warning', async () => {
    let events = 0;
    const push: StreamTransform['push'] = (event, emit) => (++events === 3 ? bang() : emit(event));
    const set = await withHooks({ onResponse: () => transform({ push }) });
    const answer = await set.stream().end();
    expect(answer.events.at(-1)?.json).toMatchObject({ error: { code: 'upstream_stream_interrupted' } });
    expect(answer.text).not.toContain('[DONE]');
    const summary = await set.gateway.logged('upstream=a done ');
    expect([summary.level, summary['result']]).not.toEqual([30, 'cancelled']);
    expect(summary.level).toBe(40);
  });

  it.each([
    ['onFinish', { onFinish: bang }],
    ['onFailover', { onFailover: bang }],
    ['observe(event)', { observe: () => ({ needles: null, observe: bang, whole: bang }) }],
  ] as [string, ExchangeInterceptor][])(
    'in %s: the answer is whole all the same, the throw is counted',
    async (_hook, hooks) => {
      const set = await withHooks(hooks, { upstreams: 2 });
      set.a.next(
        (_r, answer) => answer.error(500),
        (_r, answer) => answer.error(500),
      );
      expect((await set.chat().end()).text).toBe(JSON.stringify(completion()));
      const stream = await set.stream().end();
      expect([stream.status, stream.text.endsWith(DONE)]).toEqual([200, true]);
      await set.gateway.logged('plugin test failed');
      const metrics = await set.gateway.metrics();
      expect(
        metrics.samples.some(
          ({ name, labels, value }) => name.includes('plugin') && labels['plugin'] === 'test' && value >= 1,
        ),
      ).toBe(true);
    },
  );
});

/** A hook that gives back what no type would allow. */
const wrong = (value: unknown) => () => value as never;
const passing = (more: object = {}): StreamTransform => ({
  needles: null,
  push: (event, emit) => emit(event),
  flush: () => {},
  whole: () => {},
  ...more,
});
const rejecting = () => Promise.reject(new Error('BANG-TEXT'));

async function pluginErrors(set: Stage): Promise<Record<string, number>> {
  const { samples } = await set.gateway.metrics();
  const own = samples.filter(({ name }) => name === 'llm_proxy_plugin_errors_total');
  return Object.fromEntries(
    own
      .filter(({ value }) => value > 0)
      .map(({ labels, value }) => [`${labels['plugin']} ${labels['hook']}`, value]),
  );
}

async function attemptResults(set: Stage): Promise<string[]> {
  const { samples } = await set.gateway.metrics();
  return samples
    .filter(({ name, value }) => name === 'llm_proxy_requests_total' && value > 0)
    .map(({ labels }) => labels['result'] ?? '');
}

describe('a plugin that breaks the contract', () => {
  const observers: [string, unknown][] = [
    ['nothing', undefined],
    ['a number', 5],
    ['{}', {}],
    ['a promise', Promise.resolve({ needles: null, observe: () => {} })],
    ['needles that are a text', { needles: 'data', observe: () => {} }],
    ['needles that are no texts', { needles: [5, null], observe: () => {} }],
    ['a whole that is no function', { needles: null, observe: () => {}, whole: 5 }],
  ];
  it.each(observers)('observe returns %s: the answer goes on without it', async (_what, returned) => {
    const set = await withHooks({ observe: wrong(returned) });
    const stream = await set.stream().end();
    expect([stream.status, stream.text.endsWith(DONE), stream.text.includes('"error"')]).toEqual([
      200,
      true,
      false,
    ]);
    expect((await set.chat().end()).text).toBe(JSON.stringify(completion()));
    const line = await set.gateway.logged('plugin test failed');
    expect(line.msg).toContain('observe');
    expect(await pluginErrors(set)).toEqual({ 'test observe': 2 });
    expect(await attemptResults(set)).toEqual(['ok']);
  });

  it('async observe that rejects: counted, and nothing is left unheard', async () => {
    const set = await withHooks({ observe: rejecting as never });
    expect((await set.stream().end()).text.endsWith(DONE)).toBe(true);
    expect(await pluginErrors(set)).toEqual({ 'test observe': 1 });
  });

  it('an observer whose methods are asynchronous, or whose needles turn bad, sees nothing more', async () => {
    let turns = 0;
    const turning = {
      get needles() {
        return ++turns > 1 ? 5 : null;
      },
      observe: () => {},
    };
    for (const observer of [{ needles: null, observe: rejecting, whole: rejecting }, turning]) {
      const set = await withHooks({ observe: wrong(observer) });
      expect((await set.stream().end()).text.endsWith(DONE)).toBe(true);
      expect(await pluginErrors(set)).toEqual({ 'test observe': 1 });
    }
  });

  const opened: [string, unknown][] = [
    ['nothing', undefined],
    ['a number', 5],
    ['a text', 'x'],
    ['{}', {}],
    ['a promise', Promise.resolve(null)],
    ['a transform without methods', { needles: null }],
    ['needles that are a text', passing({ needles: 'data' })],
    ['needles that are no texts', passing({ needles: [5, null] })],
  ];
  it.each(opened)('onResponse returns %s: 500, and no fault of the upstream', async (_what, returned) => {
    const set = await withHooks({ onResponse: wrong(returned) });
    for (const ask of [set.stream, set.chat]) {
      const answer = await ask().end();
      expect(answer.status).toBe(500);
      expect(answer.json).toMatchObject({ error: { code: 'plugin_failed' } });
    }
    const line = await set.gateway.logged('plugin test failed');
    expect(line.msg).toContain('onResponse');
    expect(await pluginErrors(set)).toEqual({ 'test onResponse': 2 });
    expect(await attemptResults(set)).toEqual(['cancelled']);
    await expectSlotFree(set);
  });

  it.each([
    ['onAttempt', 0],
    ['onResponse', 1],
  ])(
    'an attempt that %s stops is told and counted only where the provider was asked: %d',
    async (hook, attempts) => {
      const finished: { attempts: readonly object[] }[] = [];
      const set = await withHooks({
        [hook]: bang,
        onFinish: ({ attempts: all }) => void finished.push({ attempts: [...all] }),
      });
      const answer = await set.chat().end();
      expect([answer.status, answer.header('x-llm-proxy-attempts')]).toEqual([500, String(attempts)]);
      const metrics = await set.gateway.metrics();
      expect(metrics.sum('llm_proxy_requests_total')).toBe(attempts);
      expect(metrics.sum('llm_proxy_request_duration_seconds_count')).toBe(attempts);
      const told = Array.from({ length: attempts }, () => ({
        upstream: 'a',
        provider: 'pa',
        result: 'cancelled',
      }));
      expect(finished).toMatchObject([{ attempts: told }]);
      expect(set.a.chats).toHaveLength(attempts);
    },
  );

  it.each<[string, object]>([
    ['push throws', { push: bang }],
    ['push is asynchronous', { push: rejecting }],
    ['push emits what is no event', { push: (_: unknown, emit: (event: unknown) => void) => emit(5) }],
  ])('%s before the first byte: 500', async (_what, more) => {
    const set = await withHooks({ onResponse: () => passing(more) });
    const answer = await set.stream().end();
    expect([answer.status, answer.json]).toMatchObject([500, { error: { code: 'plugin_failed' } }]);
    expect(await pluginErrors(set)).toEqual({ 'test onResponse': 1 });
  });

  it.each([
    ['a promise', () => Promise.resolve()],
    ['a rejection', rejecting],
  ])('whole returns %s: 500', async (_what, whole) => {
    const set = await withHooks({ onResponse: () => passing({ whole }) });
    const answer = await set.chat().end();
    expect([answer.status, answer.json]).toMatchObject([500, { error: { code: 'plugin_failed' } }]);
  });

  it('an asynchronous push in the middle of a stream is no end of it', async () => {
    let events = 0;
    const push = (event: SseEvent, emit: (event: SseEvent) => void) =>
      ++events === 2 ? rejecting() : emit(event);
    const set = await withHooks({ onResponse: () => passing({ push }) });
    const parts = gate();
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('a'));
      await parts.opened;
      await answer.write(delta('b'));
      await answer.end(DONE);
    });
    const answer = set.stream();
    await answer.saw('"a"');
    parts.open();
    const { status, events: sent, text } = await answer.end();
    expect(status).toBe(200);
    expect(sent.at(-1)?.json).toMatchObject({ error: { code: 'upstream_stream_interrupted' } });
    expect(text).not.toContain('[DONE]');
    expect(await pluginErrors(set)).toEqual({ 'test onResponse': 1 });
  });

  const flushes: [string, object, Record<string, unknown>][] = [
    ['throws', { flush: bang }, {}],
    ['rejects', { flush: rejecting }, {}],
    ['throws, where no event is looked at', { flush: bang, needles: ['nothing has this'] }, {}],
    ['throws in a stream that may be continued', { flush: bang }, { on_interrupt: 'continue' }],
  ];
  it.each(flushes)('flush %s: the error event, and no [DONE]', async (_what, more, model) => {
    const set = await withHooks({ onResponse: () => passing(more) }, { model });
    const text = delta('a') + delta({}, { finish_reason: 'stop' });
    for (const pieces of [[text, DONE], [text + DONE], [text, DONE.trimEnd()]]) {
      set.a.next((_r, answer) => answer.sse(pieces));
      const { events, text: sent } = await set.stream().end();
      expect(sent).not.toContain('[DONE]');
      expect(JSON.stringify(events.at(-1)?.json ?? sent)).toMatch(
        /upstream_stream_interrupted|plugin_failed/,
      );
    }
    expect(await pluginErrors(set)).toEqual({ 'test onResponse': 3 });
  });

  it('what is flushed comes before [DONE]', async () => {
    const set = await withHooks({
      onResponse: () => passing({ flush: (emit: (event: SseEvent) => void) => emit(SseEvent.of('held')) }),
    });
    set.a.next((_r, answer) => answer.sse([delta('a'), DONE]));
    expect((await set.stream().end()).text).toBe(`${delta('a')}data: held\n\n${DONE}`);
  });

  it.each<[string, () => never]>([
    ['throws', bang],
    ['is asynchronous', rejecting as () => never],
  ])('appliesTo %s: 500, counted and named, no slot lost', async (_what, appliesTo) => {
    const set = await withHooks({ appliesTo, onRequest: () => {} });
    for (const ask of [set.stream, set.chat]) {
      const answer = await ask().end();
      expect([answer.status, answer.json]).toMatchObject([500, { error: { code: 'plugin_failed' } }]);
    }
    const line = await set.gateway.logged('plugin test failed');
    expect(line.msg).toContain('appliesTo');
    expect(await pluginErrors(set)).toEqual({ 'test appliesTo': 2 });
    await expectSlotFree(set);
  });

  it('asynchronous onFailover and onFinish that reject: counted and named', async () => {
    const set = await withHooks(
      { onFailover: rejecting as () => void, onFinish: rejecting as () => void },
      { upstreams: 2 },
    );
    set.a.next((_r, answer) => answer.error(500));
    expect((await set.chat().end()).status).toBe(200);
    await set.gateway.logged('plugin test failed in onFailover');
    await set.gateway.logged('plugin test failed in onFinish');
    expect(await pluginErrors(set)).toEqual({ 'test onFailover': 1, 'test onFinish': 1 });
  });

  it.each<[string, string, unknown]>([
    ['x-a', 'a line feed', 'a\r\nx-b: c'],
    ['x-a', 'a letter that is no byte', 'ключ'],
    ['x-a', 'nothing', null],
    ['x a', 'a name that is none', 'b'],
    ['content-length', 'what the service makes', '1'],
    ['Transfer-Encoding', 'what the service makes', 'chunked'],
  ])('sets the header %j to %s: 500, named in the log, nothing is sent', async (name, _what, value) => {
    const set = await withHooks({ onAttempt: ({ headers }) => void headers.set(name, value as string) });
    const answer = await set.chat().end();
    expect([answer.status, answer.json]).toMatchObject([500, { error: { code: 'plugin_failed' } }]);
    const line = await set.gateway.logged('plugin test failed in onAttempt');
    expect(line.msg).toContain(name);
    if (typeof value === 'string' && value.length > 1) expect(JSON.stringify(line)).not.toContain(value);
    expect(await pluginErrors(set)).toEqual({ 'test onAttempt': 1 });
    expect(set.a.requests).toEqual([]);
    await expectSlotFree(set);
  });
});

describe('a plugin that waits', () => {
  it('in onAttempt is abandoned when the client leaves', async () => {
    const waiting = gate();
    const never = gate();
    let outcome: ExchangeOutcome | undefined;
    const set = await withHooks({
      onAttempt: () => (waiting.open(), never.opened),
      onFinish: (_exchange, result) => void (outcome = result),
    });
    const answer = set.chat();
    await waiting.opened;
    expect(await set.gateway.inflight('a')).toBe(1);
    answer.leave();
    await expectSlotFree(set);
    await waitFor(() => outcome !== undefined, 'the exchange was finished');
    expect(outcome?.result).toBe('cancelled');
    expect(set.a.requests).toEqual([]);
    never.open();
    await expectSlotFree(set);
  });

  // FAULT: answered with 500 plugin_failed, unnamed in the log and uncounted, instead of a request timeout (net_err, next).
  it('in onAttempt counts in request_timeout', async () => {
    const never = gate();
    const set = await withHooks(
      { onAttempt: ({ number }) => (number === 1 ? never.opened : undefined) },
      { upstreams: 2, upstream: (i) => (i === 0 ? { request_timeout: 'PT0.1S', max_concurrency: 1 } : {}) },
    );
    const answer = await set.chat().end();
    expect(answer.header('x-llm-proxy-upstream')).toBe('b');
    await expectSlotFree(set);
    never.open();
  });

  it('in onRequest: a client that leaves takes no slot afterwards', async () => {
    const waiting = gate();
    const hold = gate();
    const set = await withHooks({ onRequest: () => (waiting.open(), hold.opened) });
    const answer = set.chat();
    await waiting.opened;
    answer.leave();
    await waitFor(() => answer.connection.closed, 'the client was gone');
    await set.gateway.metrics();
    hold.open();
    await expectSlotFree(set);
    expect(set.a.requests.every(({ over }) => over)).toBe(true);
  });
});

describe('a plugin whose start does not come to an end', () => {
  const never = (): Promise<never> => new Promise(() => {});
  const own = (hooks: object) => plugin('test', hooks as ExchangeInterceptor);
  class Waiting {
    onModuleInit = never;
  }
  class WaitingModule {}
  Module({ providers: [own({}), Waiting] })(WaitingModule);
  class ModuleThatWaits {
    onApplicationBootstrap = never;
  }
  Module({ providers: [own({})] })(ModuleThatWaits);
  class FactoryModule {}
  Module({ providers: [own({}), { provide: 'late', useFactory: never }] })(FactoryModule);
  class ImportingModule {}
  Module({ imports: [never()], providers: [own({})] })(ImportingModule);

  it.each<[string, unknown, string]>([
    ['configure', own({ configure: never }), 'plugin "test": configure'],
    ['onModuleInit', own({ onModuleInit: never }), 'plugin "test": onModuleInit'],
    [
      'onApplicationBootstrap',
      own({ onApplicationBootstrap: never }),
      'plugin "test": onApplicationBootstrap',
    ],
    ['a provider beside it', WaitingModule, 'Waiting of a plugin: onModuleInit'],
    ['its module', ModuleThatWaits, 'ModuleThatWaits of a plugin: onApplicationBootstrap'],
    ['a factory', FactoryModule, 'plugins: an asynchronous provider of one'],
    ['an import', ImportingModule, 'the plugin cannot be read (it'],
  ])('in %s: it is named, and stops the start', async (_what, given, told) => {
    const message = await refusal({ plugins: [given], pluginStartLimitMs: 500 });
    expect(message).toContain(`${told} did not come to an end within 0.5 s`);
  });

  it('one that takes its time within the limit starts, and its hooks are called once, as its own', async () => {
    const calls: string[] = [];
    const hooks = {
      name: 'mine',
      async onModuleInit(this: { name: string }) {
        await new Promise((resolve) => setImmediate(resolve));
        calls.push(`${this.name} onModuleInit`);
      },
      onApplicationBootstrap(this: { name: string }) {
        calls.push(`${this.name} onApplicationBootstrap`);
      },
    };
    const set = await stage({ plugins: [own(hooks)] });
    expect(calls).toEqual(['mine onModuleInit', 'mine onApplicationBootstrap']);
    expect((await set.chat().end()).status).toBe(200);
  });
});

describe('wiring', () => {
  it('`disable` leaves a built-in or a plugin out', async () => {
    const seen: string[] = [];
    const set = await withHooks(
      { onRequest: () => void seen.push('called') },
      { provider: { think_tags: 'split' }, file: () => ({ disable: ['think-tags', 'test'] }) },
    );
    const text = delta('<think>why</think>so') + DONE;
    set.a.next((_r, answer) => answer.sse([text]));
    expect((await set.stream().end()).text).toBe(text);
    expect(seen).toEqual([]);
  });

  // FAULT: without a plugin the boot goes on, each request is a 500 internal_error and an unhandled rejection.
  it('an unknown id in `disable` stops the boot', async () => {
    expect(await refusal({ file: () => ({ disable: ['think-tag'] }) })).toMatch(/disable\[0\].*think-tag/);
  });

  it('a duplicate id stops the boot', async () => {
    expect(await refusal({ plugins: [plugin('twice', {}), plugin('twice', {})] })).toContain('twice');
    expect(await refusal({ plugins: [plugin('think-tags', {})] })).toContain('think-tags');
  });

  it('something that registers nothing stops the boot', async () => {
    for (const given of [class Nothing {}, 5, null, {}])
      expect(await refusal({ plugins: [given] })).toContain('plugins[0]');
  });
});
