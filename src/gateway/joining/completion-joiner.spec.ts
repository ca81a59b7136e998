import { isUtf8 } from 'node:buffer';
import { describe, expect, it } from 'vitest';
import { SseEvent } from '../../common/sse/sse-event.js';
import { CHOICE_LIMIT, StreamLimitError } from '../../common/sse/stream-limit.js';
import { CompletionJoiner, LINE_LIMIT } from './completion-joiner.js';

function joiner(chunks: readonly unknown[]): CompletionJoiner {
  const result = new CompletionJoiner();
  for (const chunk of chunks)
    result.push(SseEvent.of(typeof chunk === 'string' ? chunk : JSON.stringify(chunk)));
  return result;
}

const join = (...chunks: unknown[]): unknown => JSON.parse(joiner(chunks).result().toString());
const delta = (value: object, rest: object = {}, index = 0): unknown => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index, delta: value, finish_reason: null, ...rest }],
});
const message = (...deltas: object[]): unknown =>
  (join(...deltas.map((value) => delta(value))) as { choices: { message: unknown }[] }).choices[0]?.message;

const chunkOf = (inner: string): string => `{"choices":[{"delta":${inner}}]}`;

describe('CompletionJoiner', () => {
  it('joins text, reasoning, finish_reason and usage', () => {
    expect(
      join(
        delta({ role: 'assistant', content: '' }),
        delta({ reasoning_content: 'a', reasoning: 'x' }),
        delta({ reasoning_content: 'b' }),
        delta({ content: 'Hel' }),
        delta({ content: 'lo' }, { stop_reason: null }),
        delta({}, { finish_reason: 'length', stop_reason: 7 }),
        { choices: [], usage: { total_tokens: 5 } },
        '[DONE]',
      ),
    ).toEqual({
      id: 'c1',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello', reasoning_content: 'ab', reasoning: 'x' },
          finish_reason: 'length',
          stop_reason: 7,
        },
      ],
      usage: { total_tokens: 5 },
    });
  });

  it('keeps unknown top-level fields byte for byte, the first one of each', () => {
    const result = joiner([
      '{"n":12345678901234567890,"f":1.0,"system_fingerprint":null,"choices":[{"delta":{"content":"a"}}]}',
      '{"n":1,"system_fingerprint":"fp","service_tier":"x"}',
    ]).result();
    expect(result.toString()).toBe(
      '{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":null}],' +
        '"n":12345678901234567890,"f":1.0,"system_fingerprint":"fp","service_tier":"x"}',
    );
  });

  it('sorts choices and joins their log probabilities', () => {
    const logprobs = (token: string): object => ({ logprobs: { content: [{ token }], refusal: null } });
    const joined = join(
      delta({ content: 'B' }, {}, 1),
      delta({ content: 'a' }, logprobs('a')),
      delta({ content: 'b' }, logprobs('b')),
    ) as { choices: object[] };
    expect(joined.choices).toEqual([
      {
        index: 0,
        message: { role: 'assistant', content: 'ab' },
        logprobs: { content: [{ token: 'a' }, { token: 'b' }] },
        finish_reason: null,
      },
      { index: 1, message: { role: 'assistant', content: 'B' }, finish_reason: null },
    ]);
  });

  it('merges tool calls by index, and leaves content null beside them', () => {
    const call = (
      index: number | undefined,
      id: string | undefined,
      name: string | undefined,
      args: string,
    ): object => ({
      tool_calls: [{ index, id, ...(id && { type: 'function' }), function: { name, arguments: args } }],
    });
    expect(
      message(
        { role: 'assistant', content: '' },
        call(1, 'b', 'g', ''),
        call(0, 'a', 'f', '{"x"'),
        call(0, undefined, undefined, ':1}'),
        call(1, '', '', '{}'),
      ),
    ).toEqual({
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } },
        { id: 'b', type: 'function', function: { name: 'g', arguments: '{}' } },
      ],
    });
    const two = [
      { id: 'a', type: 'function', function: { name: 'f', arguments: '12' } },
      { id: 'b', type: 'function', function: { name: 'g', arguments: '3' } },
    ];
    const without = message(
      call(undefined, 'a', 'f', '1'),
      call(undefined, undefined, undefined, '2'),
      call(undefined, 'b', 'g', '3'),
    );
    expect(without).toEqual({ role: 'assistant', content: null, tool_calls: two });
    expect(message(call(0, 'a', 'f', '12'), call(0, 'b', 'g', '3'))).toEqual(without);
    expect(message(call(0, 'a', 'f', '1'), call(0, 'a', 'f', '2'), call(1, 'b', 'g', '3'))).toEqual(without);
  });

  it('joins what else a delta may hold', () => {
    expect(
      message(
        { refusal: 'I ', audio: { id: 'x', data: 'AA', expires_at: 1 }, reasoning_details: [{ a: 1 }] },
        { refusal: 'can not', audio: { data: 'BB', expires_at: 2 }, reasoning_details: [{ a: 2 }] },
        { function_call: { name: 'f', arguments: '{' } },
        { function_call: { arguments: '}' } },
      ),
    ).toEqual({
      role: 'assistant',
      content: null,
      refusal: 'I can not',
      audio: { id: 'x', data: 'AABB', expires_at: 2 },
      reasoning_details: [{ a: 1 }, { a: 2 }],
      function_call: { name: 'f', arguments: '{}' },
    });
    expect(message({ content: [{ type: 'x' }] }, { content: 'a' })).toEqual({
      role: 'assistant',
      content: [{ type: 'x' }, { type: 'text', text: 'a' }],
    });
    expect(message({ role: 'assistant' })).toEqual({ role: 'assistant', content: '' });
  });

  it('takes keys such as __proto__ for plain keys', () => {
    const poison =
      '{"choices":[{"delta":{"__proto__":{"x":1},"o":{"__proto__":{"y":2}},"tool_calls":[{"__proto__":{"z":3}}]}}]}';
    const text = joiner([poison, poison]).result().toString();
    expect(text).toContain('"__proto__":{"x":1}');
    expect(text).toContain('"o":{"__proto__":{"y":2}}');
    expect(Object.keys(Object.prototype)).toEqual([]);
    expect(({} as { x?: number }).x).toBeUndefined();
  });

  it.each([[[]], [['[DONE]']], [['']]])('makes an empty answer of a stream without a chunk: %j', (events) => {
    expect(JSON.parse(joiner(events).result().toString())).toEqual({
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: '' }, finish_reason: null }],
    });
  });

  it('tells an error from an answer, and half an answer from a whole one', () => {
    const error = { error: { message: 'x' } };
    const state = (...chunks: unknown[]): boolean[] => {
      const result = joiner(chunks);
      return [result.error, result.interrupted, result.fault !== null];
    };
    expect(state(error)).toEqual([true, false, false]);
    expect(state(delta({ content: 'a' }), error)).toEqual([false, true, false]);
    expect(state({ ...(delta({}) as object), error: null })).toEqual([false, false, false]);
    expect(state('[DONE]')).toEqual([false, false, false]);
    expect(state('sorry', '[DONE]')).toEqual([false, false, true]);
    expect(state('sorry', delta({ content: 'a' }))).toEqual([false, false, true]);
    expect(state('sorry', error)).toEqual([true, false, false]);
  });

  const deep = `{"choices":[{"delta":{"content":${'['.repeat(11_000)}${']'.repeat(11_000)}}}]}`;
  it.each([
    '{"choices":[{"delta":{"content":"lost"}}',
    'lost',
    deep,
    '{"choices":[{"delta":{"content":"lo\\xst"}}]}',
    '{"choices":[{"delta":{"content":"a" "b"}}]}',
    '{"choices":[{"delta":{"n":[1,,]}}]}',
    '{"choices":[{"delta":"lost"}]}',
    '{"choices":["lost"]}',
    '{"choices":{"0":"lost"}}',
    '{"choices":[{"delta":{} "x"}]}',
    '{"choices":[{"logprobs":{"content":[1,,]}}]}',
    '{"choices":[{"finish_reason":"lo\\xst"}]}',
    '{"choices":[],"usage":{"a"}}',
  ])('leaves nothing out silently: %.60s', (lost) => {
    const events = [delta({ content: 'a' }), lost.replaceAll('\\\\', '\\'), delta({ content: 'b' })];
    expect(joiner(events).fault).toBe('an event of the stream cannot be read');
  });

  it('takes what is odd but can be read', () => {
    const events = [
      '{"choices":[{"delta":{"content":"a"},"logprobs":0.5}]}',
      '{"choices":[{"delta":null,"message":null,"logprobs":null}]}',
      '{"choices":null}',
      '{"choices":{}}',
      '{"choices":[{"delta":"","logprobs":[]}]}',
    ];
    expect(joiner(events).fault).toBeNull();
    expect(join(...events)).toMatchObject({ choices: [{ message: { content: 'a' }, logprobs: [] }] });
  });

  it.each(['null', '5', '-0.5', 'true', ' false '])('takes a value that can say nothing: %s', (data) => {
    expect(joiner([delta({ content: 'a' }), data]).fault).toBeNull();
  });

  it.each(['"text"', '[]', '5x', 'nul'])('takes nothing else for one: %s', (data) => {
    expect(joiner([delta({ content: 'a' }), data]).fault).not.toBeNull();
  });

  it('ends with [DONE]', () => {
    const joined = join(delta({ content: 'Hel' }), ' [DONE] ', delta({ content: 'MORE' }), 'x', {
      error: 'y',
    });
    expect(joined).toMatchObject({ choices: [{ message: { content: 'Hel' } }] });
  });

  it('reads chunks that no blank line parts, and nothing between them', () => {
    const lines = [delta({ content: 'Hel' }), delta({ content: 'lo' })].map((one) => JSON.stringify(one));
    for (const end of ['', '\n[DONE]', '\n\n[DONE]\n']) {
      const one = joiner([lines.join('\n') + end]);
      expect([one.fault, one.done]).toEqual([null, end !== '']);
      expect(JSON.parse(one.result().toString())).toMatchObject({
        choices: [{ message: { content: 'Hello' } }],
      });
    }
    expect(joiner([`${lines.join('\n')}\nx`]).fault).not.toBeNull();
    expect(joiner([`${lines.join('\n')}\n{"half`]).fault).not.toBeNull();
  });

  const calls = (...pieces: object[]): unknown =>
    (message(...pieces.map((piece) => ({ tool_calls: [piece].flat() }))) as { tool_calls: unknown })
      .tool_calls;
  const called = (name: string, args: string, more: object = {}): object => ({
    index: 0,
    id: '',
    type: 'function',
    function: { name, arguments: args },
    ...more,
  });
  const call = (name: string, args: string): object => ({
    type: 'function',
    function: { name, arguments: args },
  });

  it('tells calls apart that share an index, or have neither index nor id', () => {
    const two = [call('weather', '{"c":1}'), call('time', '{"c":2}')];
    expect(calls(called('weather', '{"c":1}'), called('time', '{"c":2}'))).toEqual(two);
    const bare = two.map((one) => ({ ...one }));
    expect(calls(bare)).toEqual(two);
    // The same function twice: the arguments begin anew behind whole ones.
    const twice = [call('weather', '{"c":"}"}'), call('weather', '{"c":2}')];
    expect(calls(called('weather', '{"c":"}"}'), called('weather', '{"c"'), called('', ':2}'))).toEqual(
      twice,
    );
    const custom = (id: string, name: string, input: string): object => ({
      index: 0,
      id,
      type: 'custom',
      custom: { name, input },
    });
    expect(calls(custom('a', 'x', 'one'), custom('b', 'y', 'two'))).toEqual([
      { id: 'a', type: 'custom', custom: { name: 'x', input: 'one' } },
      { id: 'b', type: 'custom', custom: { name: 'y', input: 'two' } },
    ]);
  });

  it('keeps a call together whose name is repeated, or whose index is a text', () => {
    const one = [call('weather', '{"c":1}')];
    expect(
      calls(
        called('weather', ''),
        called('weather', '{"c":'),
        called('weather', '1}'),
        called('weather', ''),
      ),
    ).toEqual(one);
    expect(calls(called('weather', '{"c":1}', { id: 'a' }), called('weather', '', { id: 'a' }))).toEqual([
      { id: 'a', ...one[0] },
    ]);
    const [a, b] = [
      { index: '0', id: 'a' },
      { index: '1', id: 'b' },
    ];
    expect(
      calls(
        called('f', '', a),
        called('g', '', b),
        { index: '0', function: { arguments: '{"a":1}' } },
        { index: '1', function: { arguments: '{}' } },
      ),
    ).toEqual([
      { id: 'a', ...call('f', '{"a":1}') },
      { id: 'b', ...call('g', '{}') },
    ]);
  });

  it('takes a whole message where no delta said anything, and no error for one that is empty', () => {
    const whole = { role: 'assistant', content: 'Hello' };
    for (const chunks of [
      [delta({ role: 'assistant', content: '' }), delta({}, { message: whole, finish_reason: 'stop' })],
      [delta({}, { message: whole })],
      [delta({ content: 'Hello' }), delta({}, { message: whole })],
      [{ ...(delta({ content: 'Hello' }) as object), error: '' }],
      [{ ...(delta({ content: 'Hello' }) as object), error: {} }],
    ]) {
      const one = joiner(chunks);
      expect([one.fault, one.error, one.interrupted]).toEqual([null, false, false]);
      expect(JSON.parse(one.result().toString())).toMatchObject({ choices: [{ message: whole }] });
    }
  });

  it.each([[{ content: { text: 'x' } }], [{ content: 5 }], [{ tool_calls: { index: 0 } }]])(
    'cannot read a delta of another kind: %j',
    (value) => expect(joiner([delta(value)]).fault).not.toBeNull(),
  );

  it('keeps nothing of what a value came with', () => {
    const one = new CompletionJoiner();
    const text = JSON.stringify(delta({ x: { y: 1 } }, { z: 1 }));
    const read = Buffer.from(new ArrayBuffer(64 * 1024));
    const length = read.write(`data: ${text}\n\n`);
    one.push(new SseEvent(read.subarray(0, length)));
    const before = one.result().toString();
    read.fill(0);
    expect(one.result().toString()).toBe(before);
  });

  it('joins so many choices, members and tool calls and no more', () => {
    const many = (count: number): unknown[] =>
      Array.from({ length: count }, (_, i) => delta({ content: 'a' }, {}, i));
    const joined = join(...many(CHOICE_LIMIT)) as { choices: unknown[] };
    expect(joined.choices).toHaveLength(CHOICE_LIMIT);
    expect(() => join(...many(CHOICE_LIMIT + 1))).toThrow(StreamLimitError);
    const named = (i: number): object => ({ [`k${i}`]: 1 });
    for (const at of [
      (i: number) => delta(named(i)),
      (i: number) => delta({}, named(i)),
      (i: number) => delta({}, { logprobs: { [`k${i}`]: [] } }),
      (i: number) => named(i),
    ]) {
      expect(() => join(...Array.from({ length: CHOICE_LIMIT - 10 }, (_, i) => at(i)))).not.toThrow();
      expect(() => join(...Array.from({ length: CHOICE_LIMIT + 1 }, (_, i) => at(i)))).toThrow(
        StreamLimitError,
      );
    }
    const call = (index: number): unknown => delta({ tool_calls: [{ index, id: `c${index}` }] });
    const calls = Array.from({ length: CHOICE_LIMIT + 1 }, (_, i) => call(i));
    expect(() => join(...calls.slice(1))).not.toThrow();
    expect(() => join(...calls)).toThrow(StreamLimitError);
  });

  it('gives a piece with an id alone to the first of several calls with that id', () => {
    expect(
      message(
        { tool_calls: [{ index: 0, function: { arguments: 'a' } }] },
        { tool_calls: [{ index: 1, id: 'x', function: { arguments: 'b' } }] },
        { tool_calls: [{ index: 0, id: 'x' }] },
        { tool_calls: [{ id: 'x', function: { name: 'f', arguments: 'c' } }] },
      ),
    ).toMatchObject({
      tool_calls: [{ function: { name: 'f', arguments: 'ac' } }, { function: { arguments: 'b' } }],
    });
  });

  it('joins a character that is cut between two pieces', () => {
    expect(join(chunkOf('{"content":"\\ud83d"}'), chunkOf('{"content":"\\ude00"}'))).toMatchObject({
      choices: [{ message: { content: '😀' } }],
    });
    const bytes = [0xf0, 0x9f, 0x98, 0x80];
    const one = new CompletionJoiner();
    for (const byte of [...bytes, 0xff]) {
      const [head, tail] = chunkOf('{"content":"|"}').split('|') as [string, string];
      one.push(SseEvent.ofBytes([Buffer.from(head), Buffer.of(byte), Buffer.from(tail)]));
    }
    expect(one.fault).toBeNull();
    const body = one.result();
    expect(isUtf8(body)).toBe(true);
    expect(JSON.parse(body.toString())).toMatchObject({ choices: [{ message: { content: '😀\ufffd' } }] });
  });

  it('reads so many chunks in one event and no more', () => {
    const lines = (count: number): string => Array.from({ length: count }, () => '{}').join('\n');
    expect(joiner([lines(LINE_LIMIT)]).fault).toBeNull();
    expect(() => joiner([lines(LINE_LIMIT + 1)])).toThrow(StreamLimitError);
    expect(joiner(['\n'.repeat(LINE_LIMIT + 1) + lines(2)]).fault).toBeNull();
  });
});
