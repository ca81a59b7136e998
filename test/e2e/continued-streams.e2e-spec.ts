import { describe, expect, it } from 'vitest';
import type { Exchange, ExchangeInterceptor, ExchangeOutcome } from '../../src/contracts/index.js';
import { Order, RegisterInterceptor } from '../../src/contracts/index.js';
import { chunk, completion, delta, DONE, event, finish, usage } from '../support/answers.js';
import type { Script } from '../support/scripted-upstream.js';
import { joinDeltas } from '../support/sse-text.js';
import { MESSAGES, stage, type Stage, type StageOptions } from '../support/stage.js';

const ROLE = delta({ role: 'assistant', content: '' });
const SWITCHED = ': llm-proxy switched upstream\n\n';

const continuing: StageOptions = {
  upstreams: 3,
  upstream: { prefill: true, max_concurrency: 1 },
  model: { on_interrupt: 'continue' },
};

const breaks =
  (...pieces: string[]): Script =>
  async (_request, answer) => {
    await answer.sseHead();
    for (const piece of pieces) await answer.write(piece);
    answer.reset();
  };

/** One event of another upstream, under names of its own. */
function other(of: string | object, choice: object = {}): string {
  const inner = { delta: typeof of === 'string' ? { content: of } : of, ...choice };
  return event({ ...chunk(inner), id: 'other', created: 7, model: 'other' });
}

const goesOn =
  (text: string): Script =>
  (_request, answer) =>
    answer.sse([
      other({ role: 'assistant', content: '' }),
      other(text),
      other({}, { finish_reason: 'stop' }),
      DONE,
    ]);

async function interruptions(set: Stage, upstream: string): Promise<Record<string, number>> {
  const found = (await set.gateway.metrics()).find('llm_proxy_stream_interrupted_total', { upstream });
  return Object.fromEntries(found.map(({ labels, value }) => [labels['phase'], value]));
}

describe('on_interrupt: continue', () => {
  it('the next upstream gets the text so far, the client one answer', async () => {
    const set = await stage(continuing);
    set.a.next(breaks(ROLE, delta('Hello '), delta('wor')));
    set.b.next((_r, answer) =>
      answer.sse([
        other({ role: 'assistant', content: '' }),
        other('ld'),
        other({}, { finish_reason: 'stop' }),
        event({ id: 'other', choices: [], usage }),
        DONE,
      ]),
    );
    const answer = await set.stream().end();
    expect(answer.ending).toBe('complete');
    expect(joinDeltas(answer.text)).toBe('Hello world');
    expect(new Set(answer.events.flatMap(({ json }) => json?.['id'] ?? []))).toEqual(new Set(['c1']));
    expect(answer.text.startsWith(ROLE + delta('Hello ') + delta('wor') + SWITCHED)).toBe(true);
    expect(answer.text.endsWith(DONE)).toBe(true);
    expect(answer.header('x-llm-proxy-upstream')).toBe('a');
    expect(set.b.last.json).toEqual({
      model: 'real-b',
      stream: true,
      messages: [...MESSAGES, { role: 'assistant', content: 'Hello wor' }],
    });
    expect(set.c.requests).toHaveLength(0);
    expect(await interruptions(set, 'a')).toEqual({ content: 1 });
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_requests_total', { upstream: 'a', result: 'net_err' })).toBe(1);
    expect(metrics.sum('llm_proxy_requests_total', { upstream: 'b', result: 'ok' })).toBe(1);
    expect(metrics.sum('llm_proxy_tokens_total', { upstream: 'b', direction: 'input' })).toBe(7);
    expect((await set.gateway.logged('done result=ok')).msg).toContain('upstream=b');
  });

  it('appends to the assistant message that the client itself began, and touches nothing else', async () => {
    const set = await stage(continuing);
    set.a.next(breaks(delta(' there')));
    set.b.next(goesOn('Well, hello there, you'));
    const messages =
      '[{"role":"user","content":"h\\u00e9"},{"content":"Well, hello","role":"assistant","n":1.0}]';
    const body = `{"model":"m","stream":true,"messages":${messages},"seed":12345678901234567890}`;
    const answer = await set.stream({}, { body }).end();
    // The whole message came back as an echo.
    expect(joinDeltas(answer.text)).toBe(' there, you');
    expect(set.b.last.text).toBe(
      body.replace('"m"', '"real-b"').replace('"Well, hello"', '"Well, hello there"'),
    );
  });

  it('merges what the upstream wants beside the text', async () => {
    const prefill = {
      message: { prefix: true },
      body: { continue_final_message: true, add_generation_prompt: false, options: { a: 1 } },
    };
    const set = await stage({
      ...continuing,
      upstream: (i) => ({ prefill: i === 1 ? prefill : true }),
      provider: { patch: { options: { b: 2 } } },
    });
    set.a.next(breaks(delta('one')));
    set.b.next(goesOn('two'));
    await set.stream().end();
    expect(set.a.last.json).not.toHaveProperty('continue_final_message');
    expect(set.b.last.json).toMatchObject({
      messages: [...MESSAGES, { role: 'assistant', content: 'one', prefix: true }],
      continue_final_message: true,
      add_generation_prompt: false,
      options: { a: 1, b: 2 },
    });
  });

  it('asks as usual where no text was sent yet', async () => {
    const set = await stage({
      ...continuing,
      upstream: { prefill: { body: { continue_final_message: true } } },
    });
    set.a.next(breaks(ROLE));
    set.b.next(goesOn('all of it'));
    const answer = await set.stream().end();
    expect(joinDeltas(answer.text)).toBe('all of it');
    expect(set.b.last.json).toEqual({ model: 'real-b', stream: true, messages: MESSAGES });
    expect(await interruptions(set, 'a')).toEqual({ before_content: 1 });
  });

  it.each<[string, Script]>([
    ['503', (_r, answer) => answer.error(503)],
    ['400', (_r, answer) => answer.error(400)],
    ['401', (_r, answer) => answer.error(401)],
    ['JSON', (_r, answer) => answer.json(200, completion())],
    ['an HTML page', (_r, answer) => answer.send(200, '<p>', { 'content-type': 'text/html' })],
    ['204', (_r, answer) => answer.send(204, '')],
    ['an error event', (_r, answer) => answer.sse([event({ error: { message: 'no' } }), DONE])],
    ['a break before it says anything', breaks(ROLE)],
    ['an end without a word', (_r, answer) => answer.sse([': hm\n\n', ROLE])],
    ['a stream without a type that is none', (_r, answer) => answer.send(200, 'x')],
  ])('a second upstream that answers with %s leaves no trace; the third goes on', async (_name, script) => {
    const set = await stage(continuing);
    set.a.next(breaks(delta('one')));
    set.b.next(script);
    set.c.next(goesOn('two'));
    const answer = await set.stream().end();
    // `a` had sent no role, so that of `c` is the first one.
    const rest = [ROLE, delta('two', {}), event(chunk({ finish_reason: 'stop' })), DONE];
    expect(answer.text).toBe(delta('one') + SWITCHED + rest.join(''));
    expect(set.c.last.json['messages']).toEqual([...MESSAGES, { role: 'assistant', content: 'one' }]);
  });

  it('goes on with a stream without a content type, and with a coded one', async () => {
    const { gzipSync } = await import('node:zlib');
    const set = await stage(continuing);
    set.a.next(breaks(delta('one')));
    set.b.next(async (_r, answer) => {
      await answer.head(200);
      await answer.write(other('two'));
      answer.reset();
    });
    set.c.next((_r, answer) => answer.sse([gzipSync(other('three') + DONE)], { 'content-encoding': 'gzip' }));
    const answer = await set.stream().end();
    expect(joinDeltas(answer.text)).toBe('onetwothree');
    expect(answer.text.split(SWITCHED)).toHaveLength(3);
    expect(set.c.last.json['messages']).toEqual([...MESSAGES, { role: 'assistant', content: 'onetwo' }]);
  });

  it('ends as an interrupted stream where nobody is left, each having been asked once', async () => {
    const set = await stage(continuing);
    for (const [i, upstream] of [set.a, set.b, set.c].entries())
      upstream.always(breaks(delta('xyz'.charAt(i))));
    const answer = await set.stream().end();
    expect(joinDeltas(answer.text)).toBe('xyz');
    expect(answer.text).toContain('upstream_stream_interrupted');
    expect(answer.text).not.toContain('[DONE]');
    for (const upstream of [set.a, set.b, set.c]) expect(upstream.requests).toHaveLength(1);
    expect((await set.gateway.logged('done result=net_err')).msg).toContain('status=200');
  });

  it('a 4xx to a continuation speaks of the request: it rests nobody', async () => {
    const set = await stage({ ...continuing, provider: { backoff: 'PT1M', probe_interval: 'PT0S' } });
    set.a.next(breaks(delta('one')));
    set.b.next((_r, answer) => answer.error(400));
    await set.stream().end();
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_upstream_fail_streak', { upstream: 'b' })).toBe(0);
    expect(metrics.sum('llm_proxy_upstream_fail_streak', { upstream: 'a' })).toBe(1);
    expect(metrics.sum('llm_proxy_requests_total', { upstream: 'b', result: '4xx' })).toBe(1);
  });

  it('with several keys: who broke off is not asked again with another one', async () => {
    const set = await stage({
      ...continuing,
      provider: { key: undefined, keys: ['sk-one-11111111', 'sk-two-22222222'] },
    });
    set.a.always(breaks(delta('one')));
    set.b.next((_r, answer) => answer.error(429), goesOn('two'));
    const answer = await set.stream().end();
    expect(joinDeltas(answer.text)).toBe('onetwo');
    expect(set.a.requests).toHaveLength(1);
    expect(set.b.requests).toHaveLength(2);
    expect(set.b.last.json['messages']).toEqual([...MESSAGES, { role: 'assistant', content: 'one' }]);
  });

  it('where errors are classified an error that would pass to the client cannot any more', async () => {
    const set = await stage({ ...continuing, provider: { errors: { server_error: { retries: 0 } } } });
    set.a.next(breaks(delta('one')));
    set.b.next((_r, answer) => answer.json(400, { error: { message: 'prompt is too long' } }));
    set.c.next((_r, answer) => answer.error(422));
    const answer = await set.stream().end();
    expect(answer.status).toBe(200);
    expect(answer.text.startsWith(delta('one'))).toBe(true);
    expect(answer.text).toContain('upstream_stream_interrupted');
    expect(answer.text).not.toContain('too long');
    expect(set.c.requests).toHaveLength(1);
  });

  it('is not for several answers at once, and not for tool calls', async () => {
    const set = await stage(continuing);
    set.a.next(breaks(delta('one')), breaks(delta({ tool_calls: [{ index: 0, id: 'x' }] })));
    expect((await set.stream({ n: 2 }).end()).text).toContain('upstream_stream_interrupted');
    expect((await set.stream().end()).text).toContain('upstream_stream_interrupted');
    expect(set.b.requests).toHaveLength(0);
    expect(await interruptions(set, 'a')).toEqual({ content: 1, tool_calls: 1 });
  });

  it('is not for several answers at once that only a patch asks for', async () => {
    const { model, ...rest } = continuing;
    const set = await stage({ ...rest, model: { ...model, patch: { n: 2 } } });
    set.a.next(breaks(delta('one')));
    expect((await set.stream().end()).text).toContain('upstream_stream_interrupted');
    expect(set.a.requests[0]?.json).toMatchObject({ n: 2 });
    expect(set.b.requests).toHaveLength(0);
  });

  it('a break behind the finish reason is the end', async () => {
    const finished: ExchangeOutcome[] = [];
    @RegisterInterceptor({ id: 'watch', order: Order.observe })
    class Watch implements ExchangeInterceptor {
      onFinish(_exchange: Exchange, outcome: ExchangeOutcome): void {
        finished.push(outcome);
      }
    }
    const set = await stage({ ...continuing, plugins: [Watch] });
    set.a.next(breaks(delta('one'), finish()));
    const answer = await set.stream().end();
    expect(answer.text).toBe(delta('one') + finish() + DONE);
    expect(answer.ending).toBe('complete');
    expect(set.b.requests).toHaveLength(0);
    expect(await interruptions(set, 'a')).toEqual({ after_finish: 1 });
    expect(finished).toMatchObject([{ status: 200, complete: true }]);
  });

  it('silence is a break too', async () => {
    const set = await stage({
      ...continuing,
      upstream: (i) => ({ prefill: true, ...(i === 0 ? { idle_timeout: 'PT0.1S' } : {}) }),
    });
    set.a.next(async (request, answer) => {
      await answer.sseHead();
      await answer.write(delta('one'));
      await request.closed;
    });
    set.b.next(goesOn('two'));
    expect(joinDeltas((await set.stream().end()).text)).toBe('onetwo');
  });

  it('keeps thoughts apart from the text: the next upstream gets what the client has', async () => {
    const set = await stage({ ...continuing, provider: { think_tags: 'split' } });
    set.a.next(breaks(ROLE, delta('<think>hm'), delta(' hm</think>Hello '), delta('wor')));
    set.b.next(goesOn('ld'));
    const answer = await set.stream().end();
    expect(joinDeltas(answer.text)).toBe('Hello world');
    expect(joinDeltas(answer.text, 'reasoning_content')).toBe('hm hm');
    expect(set.b.last.json['messages']).toEqual([...MESSAGES, { role: 'assistant', content: 'Hello wor' }]);
  });

  describe.each(['split', 'strip'])('a tag that broke in the middle, with think_tags: %s', (think_tags) => {
    const set = () => stage({ ...continuing, provider: { think_tags } });
    const ends: [string, (...pieces: string[]) => Script][] = [
      ['a reset', breaks],
      [
        'an error event',
        (...pieces) =>
          (_r, answer) =>
            answer.sse([...pieces, event({ error: { message: 'no' } })]),
      ],
    ];

    it.each(ends)('was not sent: the next upstream begins anew after %s', async (_name, ending) => {
      const { a, b, stream } = await set();
      a.next(ending(ROLE, delta('<th')));
      b.next(goesOn('<think>SECRET</think>Answer'));
      const answer = await stream().end();
      expect(joinDeltas(answer.text)).toBe('Answer');
      expect(joinDeltas(answer.text, 'reasoning_content')).toBe(think_tags === 'split' ? 'SECRET' : '');
      expect(b.last.json['messages']).toEqual(MESSAGES);
    });

    it.each(ends)('is no part of what the next upstream goes on with after %s', async (_name, ending) => {
      const { a, b, stream } = await set();
      a.next(ending(ROLE, delta('Hello <think>hm</think>w<thin')));
      b.next(goesOn('<think>SECRET</think>orld'));
      const answer = await stream().end();
      expect(joinDeltas(answer.text)).toBe('Hello world');
      expect(b.last.json['messages']).toEqual([...MESSAGES, { role: 'assistant', content: 'Hello w' }]);
    });

    it.each(ends)(
      'is given to the client before the error where nobody goes on: %s',
      async (_name, ending) => {
        const { a, b, c, stream } = await set();
        a.next(ending(ROLE, delta('Hello <th')));
        b.next((_r, answer) => answer.error(503));
        c.next(ending(ROLE));
        const answer = await stream().end();
        expect(answer.text.startsWith(ROLE + delta('Hello '))).toBe(true);
        const [text, error] = answer.events.slice(-2);
        expect(text?.json).toMatchObject({ choices: [{ delta: { content: '<th' } }] });
        expect(error?.json).toMatchObject({ error: { code: 'upstream_stream_interrupted' } });
        expect(joinDeltas(answer.text)).toBe('Hello <th');
      },
    );
  });

  it('stays one session', async () => {
    const set = await stage({ ...continuing, provider: { session_header: 'x-session' } });
    set.a.next(breaks(delta('one')));
    set.b.next(goesOn('two'));
    await set.stream().end();
    expect(set.b.last.header('x-session')).toBe(set.a.last.header('x-session'));
    expect(set.b.last.header('x-session')).toBeDefined();
  });

  it('a plugin that fails on the continuation ends the stream in band', async () => {
    @RegisterInterceptor({ id: 'picky' })
    class Picky implements ExchangeInterceptor {
      onAttempt({ number }: { number: number }): void {
        if (number > 1) throw new Error('not again');
      }
    }
    const set = await stage({ ...continuing, plugins: [Picky] });
    set.a.next(breaks(delta('one')));
    const answer = await set.stream().end();
    expect(answer.status).toBe(200);
    expect(joinDeltas(answer.text)).toBe('one');
    expect(answer.text).toContain('upstream_stream_interrupted');
    expect(set.b.requests).toHaveLength(0);
  });

  it('a client that leaves in between leaves nothing behind', async () => {
    const set = await stage(continuing);
    set.a.next(breaks(delta('one')));
    set.b.next(async (request, answer) => {
      await answer.sseHead();
      await request.closed;
    });
    const answer = set.stream();
    await set.b.chat(0);
    answer.leave();
    await set.b.last.closed;
    expect(set.b.last.aborted).toBe(true);
    expect(set.c.requests).toHaveLength(0);
    await set.gateway.logged('done result=cancelled');
  });

  it('does nothing for a whole answer', async () => {
    const set = await stage(continuing);
    const answer = await set.chat().end();
    expect(answer.json).toMatchObject(completion());
    set.a.next((_r, answer) => answer.json(200, completion()));
    expect((await set.stream().end()).json).toMatchObject(completion());
  });
});
