import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunk, completion, DONE, delta, event, finish, usage } from '../support/answers.js';
import { TestGateway } from '../support/gateway.js';
import { type Script, ScriptedUpstream } from '../support/scripted-upstream.js';
import { joinDeltas, parseSse } from '../support/sse-text.js';
import { stage, type Stage, type StageOptions } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';

const split: StageOptions = { provider: { think_tags: 'split' } };
const strip: StageOptions = { provider: { think_tags: 'strip' } };

/** The stream of the client where the upstream sends these pieces. */
async function through(set: Stage, pieces: readonly (string | Buffer)[]): Promise<string> {
  set.a.next((_request, answer) => answer.sse(pieces));
  const answer = await set.stream().end();
  expect([answer.status, answer.ending]).toEqual([200, 'complete']);
  return answer.text;
}

async function whole(set: Stage, body: unknown): Promise<Record<string, unknown>> {
  set.a.next((_request, answer) => answer.json(200, body));
  return (await set.chat().end()).json;
}

interface Choice {
  index: number;
  delta: Record<string, unknown>;
  finish_reason: unknown;
}
const choicesOf = (text: string): Choice[] =>
  parseSse(text).flatMap(({ json }) => (json?.['choices'] ?? []) as Choice[]);

describe('the choices of one answer', () => {
  const held = Array.from({ length: 3000 }, (_, i) => event(chunk({ index: i, delta: { content: '<' } })));

  it('are bounded in a stream: more of them are a break, and what was held comes first', async () => {
    const set = await stage(split);
    set.a.next((_request, answer) => answer.sse([held.join(''), DONE]));
    const answer = await set.stream().end();
    expect(choicesOf(answer.text).map(({ index }) => index)).toEqual(
      Array.from({ length: 1024 }, (_, i) => i),
    );
    expect(answer.events.at(-1)?.json).toMatchObject({ error: { code: 'upstream_stream_interrupted' } });
    expect(answer.text).not.toContain('[DONE]');
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_requests_total', { upstream: 'a', result: 'net_err' })).toBe(1);
    expect(metrics.sum('llm_proxy_requests_total', { upstream: 'a', result: 'ok' })).toBe(0);
  });

  it('are bounded also where the one too many comes at the very end, without a blank line', async () => {
    const set = await stage(split);
    set.a.next((_request, answer) => answer.sse([held.slice(0, 1025).join('').trimEnd()]));
    const answer = await set.stream().end();
    expect(answer.events.at(-1)?.json).toMatchObject({ error: { code: 'upstream_stream_interrupted' } });
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_requests_total', { upstream: 'a', result: 'net_err' })).toBe(1);
  });

  it('are bounded where a stream is joined: another upstream answers', async () => {
    const set = await stage({ upstreams: 2 });
    set.a.next((_request, answer) => answer.sse([held.join(''), DONE]));
    set.b.next((_request, answer) => answer.json(200, completion('whole')));
    const answer = await set.chat().end();
    expect([answer.status, answer.header('x-llm-proxy-upstream')]).toEqual([200, 'b']);
  });

  const whole = JSON.stringify({
    choices: Array.from({ length: 1025 }, () => ({ message: { content: 'a<b' } })),
  });

  it.each([
    ['whole', false, (_request, answer) => answer.json(200, JSON.parse(whole))],
    ['streamed', true, (_request, answer) => answer.sse([held.join(''), DONE])],
    ['to be joined', false, (_request, answer) => answer.sse([held.join(''), DONE])],
  ] as [string, boolean, Script][])(
    'rest no upstream, which gave what it was asked for: %s',
    async (_what, stream, script) => {
      const set = await stage({ provider: { think_tags: 'split', backoff: 'PT1H' } });
      set.a.next(script);
      await set.chat({ stream, n: 1025 }).end();
      set.a.next((_request, answer) => answer.json(200, completion('next')));
      expect((await set.chat().end()).status).toBe(200);
      const metrics = await set.gateway.metrics();
      expect(metrics.sum('llm_proxy_upstream_fail_streak', { upstream: 'a' })).toBe(0);
    },
  );
});

describe('an answer that is nested too deeply to be read', () => {
  const nest = (depth: number, end = '}') =>
    `{"choices":[{"index":0,"message":{"content":"<think>a</think>b"}}],"deep":${'['.repeat(depth)}${']'.repeat(depth)}${end}`;

  it('passes as it is', async () => {
    for (const options of [split, {}]) {
      const set = await stage(options);
      set.a.next((_r, answer) => answer.json(200, nest(200_000)));
      const answer = await set.chat().end();
      expect([answer.status, answer.text === nest(200_000)]).toEqual([200, true]);
    }
  });

  it('fails over where it is cut', async () => {
    const set = await stage({ ...split, upstreams: 2 });
    set.a.next((_r, answer) => answer.json(200, nest(200_000, '')));
    set.b.next((_request, answer) => answer.json(200, completion('whole')));
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
  });
});

describe('think tags in a stream', () => {
  const texts: [string, string, string][] = [
    ['<think>why</think>so', 'so', 'why'],
    ['a<think>b</think>c<think>d</think>e', 'ace', 'bd'],
    ['<think>open at the end', '', 'open at the end'],
    ['a stray </think> stays', 'a stray </think> stays', ''],
    ['<think>a <think> inside</think>b', 'b', 'a <think> inside'],
    ['<think>\n\nx\n</think>\n\ny', '\n\ny', '\n\nx\n'],
    ['<think></think>x', 'x', ''],
    ['< think> <Think> <THINK> <thinking>', '< think> <Think> <THINK> <thinking>', ''],
    ['1 < 2 <t <th <thi <thin', '1 < 2 <t <th <thi <thin', ''],
    ['<<think>x<</think>>', '<>', 'x<'],
    ['<think>a</thin', '', 'a</thin'],
    ['ends with <thin', 'ends with <thin', ''],
    ['<think>Привет 😀</think>мир 🌍', 'мир 🌍', 'Привет 😀'],
    ['<think>quote " and \\ </think>" \\', '" \\', 'quote " and \\ '],
    ['no tags at all', 'no tags at all', ''],
  ];

  it.each(texts)('%j, cut after every character', async (text, content, reasoning) => {
    for (const [options, thoughts] of [
      [split, reasoning],
      [strip, ''],
    ] as const) {
      const set = await stage(options);
      const answer = await through(set, [
        ...Array.from(text).map((character) => delta(character)),
        finish(),
        DONE,
      ]);
      expect(joinDeltas(answer)).toBe(content);
      expect(joinDeltas(answer, 'reasoning_content')).toBe(thoughts);
      expect(answer.endsWith(finish() + DONE)).toBe(true);
      expect(
        choicesOf(answer).filter(
          ({ delta: d, finish_reason }) => finish_reason === null && Object.keys(d).length === 0,
        ),
      ).toEqual([]);
    }
  });

  it('whatever the cuts between events and between chunks of the connection', async () => {
    const set = await stage(split);
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...texts),
        fc.array(fc.nat(), { maxLength: 6 }),
        fc.array(fc.nat(), { maxLength: 12 }),
        fc.boolean(),
        async ([text, content, reasoning], cuts, pieceCuts, escaped) => {
          const bytes = Buffer.from(
            pieces(text, cuts)
              .map((part) => (escaped ? escapedDelta(part) : delta(part)))
              .join('') +
              finish() +
              DONE,
          );
          const answer = await through(set, pieces(bytes, pieceCuts));
          expect(joinDeltas(answer)).toBe(content);
          expect(joinDeltas(answer, 'reasoning_content')).toBe(reasoning);
        },
      ),
      { numRuns: 150 },
    );
  });

  it('are found where the provider escapes them', async () => {
    const set = await stage(split);
    const answer = await through(set, [
      event('{"choices":[{"index":0,"delta":{"content":"\\u003cthink\\u003ewhy\\u003c\\/think\\u003eso"}}]}'),
      DONE,
    ]);
    expect([joinDeltas(answer), joinDeltas(answer, 'reasoning_content')]).toEqual(['so', 'why']);
  });

  it('of several choices do not mix', async () => {
    const set = await stage(split);
    const answer = await through(set, [
      delta('<thi', { index: 0 }),
      delta('<think>one', { index: 1 }),
      delta('nk>zero', { index: 0 }),
      event(
        chunk(
          {},
          {
            choices: [
              { index: 0, delta: { content: '</think>A' } },
              { index: 1, delta: { content: '</think>B' } },
            ],
          },
        ),
      ),
      finish('stop', 0),
      finish('stop', 1),
      DONE,
    ]);
    expect([joinDeltas(answer, 'content', 0), joinDeltas(answer, 'reasoning_content', 0)]).toEqual([
      'A',
      'zero',
    ]);
    expect([joinDeltas(answer, 'content', 1), joinDeltas(answer, 'reasoning_content', 1)]).toEqual([
      'B',
      'one',
    ]);
  });

  it.each([
    ['the finish reason', finish()],
    ['the usage chunk', event({ id: 'c1', object: 'chat.completion.chunk', choices: [], usage })],
    ['[DONE]', DONE],
    ['tool calls', delta({ tool_calls: [{ index: 0, id: 't', function: { name: 'f', arguments: '' } }] })],
  ])('a held tail comes before %s', async (_what, closing) => {
    const set = await stage(split);
    const answer = await through(set, [delta('a <thi'), closing]);
    expect(joinDeltas(answer)).toBe('a <thi');
    expect(answer.endsWith(closing)).toBe(true);
  });

  it('a held tail comes before the finish reason in the same event', async () => {
    const set = await stage(split);
    const answer = await through(set, [
      event(chunk({ delta: { content: 'x <th' }, finish_reason: 'length' })),
      DONE,
    ]);
    expect(joinDeltas(answer)).toBe('x <th');
    const choices = choicesOf(answer);
    expect(choices.filter(({ finish_reason }) => finish_reason === 'length')).toHaveLength(1);
    expect(choices.at(-1)?.finish_reason).toBe('length');
  });

  it('one event becomes several in order, and what rides along rides once', async () => {
    const set = await stage(split);
    const source = chunk(
      {
        delta: { role: 'assistant', content: 'a<think>b</think>c<think>d</think>e', x: 1 },
        finish_reason: 'stop',
        logprobs: { content: [] },
      },
      { usage, unknown: 'field' },
    );
    const answer = await through(set, [event(source), DONE]);
    const order = choicesOf(answer).flatMap(({ delta: d }) => [
      ...(typeof d['content'] === 'string' && d['content'] !== '' ? [`c:${d['content']}`] : []),
      ...(typeof d['reasoning_content'] === 'string' ? [`r:${d['reasoning_content']}`] : []),
    ]);
    expect(order).toEqual(['c:a', 'r:b', 'c:c', 'r:d', 'c:e']);
    for (const once of [
      '"finish_reason":"stop"',
      '"usage":{',
      '"logprobs":{',
      '"unknown":"field"',
      '"x":1',
    ]) {
      expect(answer.split(once).length - 1, once).toBe(1);
    }
  });

  it('events with nothing of ours pass as they are', async () => {
    const set = await stage(split);
    const untouched = [
      ': a comment\n\n',
      'event: ping\nid: 7\ndata: {"a" : 1.0}\n\n',
      'data:{"choices":[{"index":0,"delta":{"content":"x"},"n":1.0}]}\n\n',
      'data: not json <think>\n\n',
      'data: {"choices":[{"index":0,"delta":{"content":["<think>"]}}]}\n\n',
      'data: {"choices":[{"index":0,"delta":{"content":null}}]}\n\n',
      'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":"<think>"}}]}}]}\n\n',
      'data: {"x":"<think>"}\n\n',
      DONE,
    ];
    expect(await through(set, untouched)).toBe(untouched.join(''));
  });

  it('drops an event that became empty, and keeps the first role', async () => {
    const set = await stage(strip);
    const first = delta({ role: 'assistant', content: '' });
    const answer = await through(set, [
      first,
      delta('<think>'),
      delta('secret'),
      delta('</think>'),
      delta('x'),
      DONE,
    ]);
    expect(answer).toBe(first + delta('x') + DONE);
  });

  it('keeps reasoning that is there and appends ours', async () => {
    const set = await stage(split);
    const answer = await through(set, [
      delta({ reasoning_content: 'given ', content: '<think>ours</think>x' }),
      DONE,
    ]);
    expect(joinDeltas(answer, 'reasoning_content')).toBe('given ours');
    expect(joinDeltas(answer)).toBe('x');
  });

  it.each(['\n', '\r\n', '\r'])('with line ends %j', async (end) => {
    const set = await stage(split);
    const text = (delta('<think>why</think>so') + DONE).replaceAll('\n', end);
    const answer = await through(set, [text]);
    expect([joinDeltas(answer), joinDeltas(answer, 'reasoning_content')]).toEqual(['so', 'why']);
    expect(answer).toContain('[DONE]');
  });

  it('several data lines, no space, no last blank line', async () => {
    const set = await stage(split);
    const answer = await through(set, [
      'data:{"choices":[{"index":0,\ndata:"delta":{"content":"<think>w</think>s"}}]}\n\n',
      delta('<think>z').trimEnd(),
    ]);
    expect([joinDeltas(`${answer}\n\n`), joinDeltas(`${answer}\n\n`, 'reasoning_content')]).toEqual([
      's',
      'wz',
    ]);
  });

  it('an event over 16 MiB breaks the stream', async () => {
    const set = await stage(split);
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('ok'));
      const piece = Buffer.alloc(1024 * 1024, 'x');
      await answer.write('data: <');
      for (let i = 0; i < 17 && !answer.socket.destroyed; i++) await answer.write(piece);
    });
    const answer = await set.stream().end();
    await waitFor(() => answer.connection.closed, 'the connection was ended');
    expect(answer.text).toContain('upstream_stream_interrupted');
    expect(answer.text).not.toContain('[DONE]');
  });

  it.each([
    ['off', false],
    ["'off'", false],
    ['false', false],
    ['split', true],
    ['true', true],
  ])('the value %s in the file', async (value, works) => {
    const up = await ScriptedUpstream.start();
    const gateway = await TestGateway.start({
      yaml: `providers: [{id: p, url: "${up.url}", think_tags: ${value}}]\nupstreams: [{id: a, provider: p, model: x}]\nmodels: [{name: m, upstreams: [a]}]\n`,
    });
    const text = delta('<think>why</think>so') + DONE;
    up.next((_r, answer) => answer.sse([text]));
    const answer = await gateway.send({ body: { model: 'm', stream: true } }).end();
    if (works) expect(joinDeltas(answer.text, 'reasoning_content')).toBe('why');
    else expect(answer.text).toBe(text);
    await gateway.close();
    await up.stop();
  });
});

describe('think tags in a JSON answer', () => {
  it.each([
    [split, '<think>why</think>so', 'so', 'why'],
    [strip, '<think>why</think>so', 'so', undefined],
    [split, '<think>all', '', 'all'],
    [strip, '<think>all', '', undefined],
    [split, 'none', 'none', undefined],
    [split, 'stray </think>', 'stray </think>', undefined],
    [split, 'a<think>b</think>c<think>d</think>', 'ac', 'bd'],
  ])('%#: %j', async (options, text, content, reasoning) => {
    const set = await stage(options);
    const answer = await whole(set, completion(text));
    const [choice] = answer['choices'] as { message: Record<string, unknown> }[];
    expect([choice?.message['content'], choice?.message['reasoning_content']]).toEqual([content, reasoning]);
    expect(answer['usage']).toEqual(usage);
  });

  it('in each choice, escaped or not, and nothing else changes', async () => {
    const set = await stage(split);
    const body =
      '{ "n":1.0,"choices":[{"message":{"content":"\\u003cthink>w\\u003c/think>s","k":1e5},"index":0},{"index":1,"message":{"content":"<think>x</think>"}}],"big":12345678901234567890 }';
    set.a.next((_r, answer) => answer.json(200, body));
    const answer = await set.chat().end();
    expect(answer.json).toMatchObject({
      choices: [
        { message: { content: 's', reasoning_content: 'w' } },
        { message: { content: '', reasoning_content: 'x' } },
      ],
    });
    expect(answer.text).toContain('"k":1e5');
    expect(answer.text).toContain('"n":1.0');
    expect(answer.text).toContain('"big":12345678901234567890');
    expect(answer.header('content-length') ?? String(answer.size)).toBe(String(answer.size));
  });

  it('leaves content that is no text', async () => {
    const set = await stage(split);
    for (const content of [null, ['<think>'], 5]) {
      const text = JSON.stringify(completion(content));
      set.a.next((_r, answer) => answer.json(200, text));
      expect((await set.chat().end()).text).toBe(text);
    }
  });

  it('appends to reasoning that is there', async () => {
    const set = await stage(split);
    const answer = await whole(set, completion('<think>ours</think>x', { reasoning_content: 'given ' }));
    expect(answer).toMatchObject({
      choices: [{ message: { content: 'x', reasoning_content: 'given ours' } }],
    });
  });

  it('also where the client asked for a stream and got JSON, and the other way round', async () => {
    const set = await stage(split);
    set.a.next((_r, answer) => answer.json(200, completion('<think>w</think>s')));
    expect((await set.stream().end()).json).toMatchObject({
      choices: [{ message: { content: 's', reasoning_content: 'w' } }],
    });
    set.a.next((_r, answer) => answer.sse([delta('<think>w</th'), delta('ink>s'), finish(), DONE]));
    expect((await set.chat().end()).json).toMatchObject({
      choices: [{ message: { content: 's', reasoning_content: 'w' } }],
    });
  });

  it('of the upstream win over those of the provider', async () => {
    const set = await stage({ ...split, upstream: { think_tags: 'off' } });
    const text = JSON.stringify(completion('<think>w</think>s'));
    set.a.next((_r, answer) => answer.json(200, text));
    expect((await set.chat().end()).text).toBe(text);
  });
});

function pieces<T extends string | Buffer>(of: T, cuts: readonly number[]): T[] {
  const places = [0, ...cuts.map((cut) => cut % (of.length + 1)), of.length].sort((x, y) => x - y);
  return places.slice(1).map((end, i) => of.slice(places[i] as number, end) as T);
}

function escapedDelta(text: string): string {
  const json = JSON.stringify(chunk({ delta: { content: text } }));
  return `data: ${json.replaceAll('<', '\\u003c').replaceAll('>', '\\u003E')}\n\n`;
}
