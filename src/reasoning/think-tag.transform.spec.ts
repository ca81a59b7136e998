import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonDocument } from '../common/json/json-document.js';
import { append, TagScanner, type TextPiece } from '../common/text/tag-scanner.js';
import { SseDecoder } from '../common/sse/sse-decoder.js';
import type { SseEvent } from '../common/sse/sse-event.js';
import { ThinkTagTransform } from './think-tag.transform.js';

interface Delta {
  readonly role?: string;
  readonly content?: unknown;
  readonly reasoning_content?: unknown;
  readonly [key: string]: unknown;
}

const frame = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const chunk = (delta: Delta, index = 0, rest: object = {}, top: object = {}): string =>
  frame({
    id: 'c1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    ...top,
    choices: [{ index, delta, ...rest }],
  });
const content = (text: string, index = 0): string => chunk({ content: text }, index, { finish_reason: null });
const finish = (index = 0): string => chunk({}, index, { finish_reason: 'stop' });
const DONE = 'data: [DONE]\n\n';

/** As a pipeline does it: only events that hold a needle of this moment are shown to the transform. */
function feed(transform: ThinkTagTransform, event: SseEvent, emit: (event: SseEvent) => void): void {
  const { needles } = transform;
  if (needles === null || needles.some((needle) => event.raw.includes(needle))) transform.push(event, emit);
  else emit(event);
}

function send(text: string, mode: 'split' | 'strip' = 'split', cuts: readonly number[] = []): string {
  const bytes = Buffer.from(text);
  const transform = new ThinkTagTransform(mode);
  const decoder = new SseDecoder();
  const sent: Buffer[] = [];
  const emit = (event: SseEvent): void => void sent.push(event.raw);
  const places = [...cuts.map((c) => c % (bytes.length + 1)), 0, bytes.length].sort((a, b) => a - b);
  for (const [i, end] of places.slice(1).entries()) {
    decoder.push(bytes.subarray(places[i], end), (event) => feed(transform, event, emit));
  }
  decoder.end((event) => feed(transform, event, emit));
  transform.flush(emit);
  return Buffer.concat(sent).toString();
}

interface Chunk {
  readonly id?: string;
  readonly usage?: unknown;
  readonly choices: { index: number; delta: Delta; finish_reason?: string | null; logprobs?: unknown }[];
}

const chunksOf = (text: string): Chunk[] =>
  text
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice(6)) as Chunk);
const deltasOf = (text: string): Delta[] =>
  chunksOf(text).flatMap((c) => c.choices.map((choice) => choice.delta));

/** What a client reads for one choice, in order. */
function read(text: string, index = 0): TextPiece[] {
  const pieces: TextPiece[] = [];
  for (const { choices } of chunksOf(text)) {
    for (const choice of choices) {
      if (choice.index !== index) continue;
      if (typeof choice.delta.content === 'string') append(pieces, false, choice.delta.content);
      if (typeof choice.delta.reasoning_content === 'string')
        append(pieces, true, choice.delta.reasoning_content);
    }
  }
  return pieces;
}

function reference(text: string): TextPiece[] {
  const scanner = new TagScanner();
  const pieces: TextPiece[] = [];
  for (const piece of [...scanner.push(text), ...scanner.flush()]) append(pieces, piece.thought, piece.text);
  return pieces;
}

const role = chunk({ role: 'assistant', content: '' });

describe('ThinkTagTransform on streams', () => {
  it.each(['split', 'strip'] as const)('passes what it cannot read as it is: %s', (mode) => {
    const odd = [
      'data: {"choices":[{"delta":{"content":"<think>"}}\n\n',
      'data: {"choices":[{"index":0,"delta":{"content":"<lo\\xst"}}]}\n\n',
      'data: {"choices":[{"index":0,"delta":{"content":"<a" "b"}}]}\n\n',
      `data: {"choices":[{"delta":{"content":${'['.repeat(11_000)}"<"${']'.repeat(11_000)}}}]}\n\n`,
      'data: {"choices":{"0":"<think>"}}\n\n',
      'data: <think>\n\n',
    ];
    for (const event of odd) {
      expect(send(event + content('b') + DONE, mode)).toBe(event + content('b') + DONE);
      expect(send(`${content('<think>a')}${event}${content('b</think>')}${DONE}`, mode)).toContain(event);
    }
  });

  it('reads the same at every cut between two events and between two chunks', () => {
    const text = 'ab<think>cd</think>ef';
    for (let i = 0; i <= text.length; i++) {
      const stream = role + content(text.slice(0, i)) + content(text.slice(i)) + finish() + DONE;
      const wanted = reference(text);
      expect(read(send(stream))).toEqual(wanted);
      expect(send(stream).endsWith(finish() + DONE)).toBe(true);
      expect(read(send(stream, 'strip'))).toEqual([{ thought: false, text: 'abef' }]);
    }
    const bytes = Buffer.from(role + content('é<think>c😀d</think>e') + finish() + DONE);
    const whole = send(bytes.toString());
    for (let i = 0; i <= bytes.length; i++) expect(send(bytes.toString(), 'split', [i])).toBe(whole);
  });

  it('agrees with the machine on the joined text, for several choices, encoders and chunkings', () => {
    const fragment = fc.constantFrom(
      '<think>',
      '</think>',
      '<',
      '</',
      '<thi',
      'nk>',
      'a',
      '>',
      '😀',
      '\\u003c',
      '"',
      ' ',
    );
    const text = fc.array(fragment, { maxLength: 4 }).map((list) => list.join(''));
    const piece = fc.record({ index: fc.nat(2), text, escape: fc.boolean() });
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), fc.array(fc.nat(), { maxLength: 5 }), (list, cuts) => {
        const events = list.map((item) => {
          const event = content(item.text, item.index);
          return item.escape ? event.replaceAll('<', '\\u003c') : event;
        });
        const stream = events.join('') + finish(0) + finish(1) + finish(2) + DONE;
        const sent = send(stream, 'split', cuts);
        const stripped = send(stream, 'strip', cuts);
        for (const index of [0, 1, 2]) {
          const joined = list.filter((item) => item.index === index).map((item) => item.text);
          const wanted = reference(joined.join(''));
          expect(read(sent, index)).toEqual(wanted);
          const kept: TextPiece[] = [];
          for (const { thought, text: t } of wanted) if (!thought) append(kept, false, t);
          expect(read(stripped, index)).toEqual(kept);
        }
        const ends = [finish(0), finish(1), finish(2), DONE].map((event) => sent.indexOf(event));
        expect(ends).toEqual([...ends].sort((one, other) => one - other));
        expect([ends[0]! >= 0, sent.endsWith(DONE)]).toEqual([true, true]);
        expect(stripped).not.toContain('reasoning_content');
      }),
      { numRuns: 500 },
    );
  });

  it('passes everything without tags as the very same bytes', () => {
    const odd = [
      ': hi\r\n\r\n',
      'data:{"choices":[{"delta":{"content":"a < b"},"n":1.0}]}\r\n\r\n',
      'event: x\ndata: <think>\ndata: y\n\n',
      chunk({ content: ['<think>'] }),
      chunk({ content: null, tool_calls: [{ index: 0, function: { arguments: '<think>' } }] }),
      'data: {"choices":[],"x":"<"}\n\ndata: {"choices":null,"usage":{"n":"<"}}\n\ndata: {"choices":[null,1,{}]}\n\n',
      'data: trailing',
    ].join('');
    expect(send(odd)).toBe(odd);
  });

  it('keeps the first role delta, and sends no event that became empty', () => {
    const first = send(chunk({ role: 'assistant', content: '<think>' }) + content('a</think>') + finish());
    expect(deltasOf(first)).toEqual([{ role: 'assistant', content: '' }, { reasoning_content: 'a' }, {}]);
    const again = send(
      role +
        chunk({ role: 'assistant', content: '<think>' }) +
        chunk({ role: 'assistant', content: '</think>' }),
    );
    expect(again).toBe(role);
    const empty = content('');
    expect(send(role + content('<th') + empty + finish())).toBe(role + empty + content('<th') + finish());
  });

  it('lets what is not text ride on exactly one event: the role on the first, the rest on the last', () => {
    const rest = { finish_reason: 'stop', logprobs: { content: [1] }, x: 1 };
    const delta = { role: 'assistant', content: 'a<think>b</think>c', refusal: null, y: 2 };
    const sent = chunksOf(send(chunk(delta, 0, rest, { usage: { n: 1 } })));
    expect(sent.map((c) => c.choices[0])).toEqual([
      { index: 0, delta: { role: 'assistant', content: 'a' }, finish_reason: null },
      { index: 0, delta: { reasoning_content: 'b' }, finish_reason: null },
      { index: 0, delta: { content: 'c', refusal: null, y: 2 }, ...rest },
    ]);
    expect(sent.map((c) => [c.id, c.usage])).toEqual([
      ['c1', undefined],
      ['c1', undefined],
      ['c1', { n: 1 }],
    ]);
    const logged = send(role + chunk({ content: '<think>' }, 0, { logprobs: { content: [1] } }));
    expect(chunksOf(logged)[1]?.choices[0]).toEqual({
      index: 0,
      delta: { content: '' },
      logprobs: { content: [1] },
    });
  });

  it.each([
    ['finish_reason', finish()],
    ['the usage chunk', frame({ id: 'c1', choices: [], usage: { n: 1 } })],
    ['a usage chunk without choices', frame({ usage: { n: 1 } })],
    ['tool calls', chunk({ tool_calls: [{ index: 0 }] })],
    ['[DONE]', DONE],
    ['an error', frame({ error: { message: 'x' } })],
    ['the end', ''],
  ])('gives back a held tail before %s', (_, last) => {
    const held = chunk({ content: 'x </' }, 0, { finish_reason: null });
    expect(send(`${role}${content('<think>')}${held}${last}`)).toBe(
      role +
        chunk({ reasoning_content: 'x ' }, 0, { finish_reason: null }) +
        chunk({ reasoning_content: '</' }, 0, { finish_reason: null }) +
        last,
    );
    expect(send(role + content('<th') + ': ping\n\n' + last)).toBe(
      role + ': ping\n\n' + content('<th') + last,
    );
  });

  it('takes an empty finish_reason for none', () => {
    const open = (text: string): string => chunk({ content: text }, 0, { finish_reason: '' });
    const sent = send(role + open('<thi') + open('nk>a</') + open('think>b') + finish());
    expect(read(sent)).toEqual(reference('<think>a</think>b'));
    expect(deltasOf(sent)).toHaveLength(4);
  });

  it('puts what was held and what comes with the end into the right order', () => {
    const sent = send(role + content('a<thi') + chunk({ content: 'n' }, 0, { finish_reason: 'length' }));
    expect(deltasOf(sent)).toEqual([
      { role: 'assistant', content: '' },
      { content: 'a' },
      { content: '<thin' },
    ]);
    expect(read(send(role + content('<think>a</thi') + finish()))).toEqual([
      { thought: true, text: 'a</thi' },
    ]);
  });

  it('appends to reasoning that was there, and leaves a value that is no text', () => {
    const deltas = (delta: Delta): Delta[] => deltasOf(send(chunk(delta)));
    expect(deltas({ content: '<think>b', reasoning_content: 'R' })).toEqual([{ reasoning_content: 'Rb' }]);
    expect(deltas({ content: 'a<think>b', reasoning_content: 'R' })).toEqual([
      { reasoning_content: 'R', content: 'a' },
      { reasoning_content: 'b' },
    ]);
    expect(deltas({ content: '<think>b</think>c', reasoning_content: null })).toEqual([
      { reasoning_content: 'b' },
      { content: 'c', reasoning_content: null },
    ]);
    expect(deltas({ content: '<think>b', reasoning_content: ['R'] })).toEqual([
      { reasoning_content: 'b' },
      { content: '', reasoning_content: ['R'] },
    ]);
    expect(deltasOf(send(chunk({ content: '<think>b', reasoning_content: 'R' }), 'strip'))).toEqual([
      { content: '', reasoning_content: 'R' },
    ]);
  });

  it('changes nothing but the text: bytes, other lines, line ends', () => {
    const before = 'event: e\r\nid: 7\r\ndata:{"n":1.0, "choices":[{"delta":{"content":';
    const after = ',"z":1e5},"big":12345678901234567890}]}\r\n\r\n';
    expect(send(`${before}"<think>\\u00e9\\ud800"${after}`)).toBe(
      'event: e\r\nid: 7\r\ndata:{"n":1.0, "choices":[{"delta":{"z":1e5,"reasoning_content":"é\\ud800"},"big":12345678901234567890}]}\r\n\r\n',
    );
    const inside = `${before}"\\u00e9"${after}`;
    expect(
      send(content('<think>') + inside).endsWith(
        inside.replace('"content":"\\u00e9",', '').replace('1e5', '1e5,"reasoning_content":"\\u00e9"'),
      ),
    ).toBe(true);
    expect(send('data: {"choices":\ndata: [{"delta":{"content":"a<think>"}}]}\n\n')).toBe(
      'data: {"choices":\ndata: [{"delta":{"content":"a"}}]}\n\n',
    );
  });

  it('is not deceived by an event that only looks like the one before', () => {
    const like = (inner: string): string => `data: {"choices":[{"delta":{"content":${inner}}}]}\n\n`;
    const open = like('"<think>x"') + like('"plain"');
    const lastDelta = (inner: string): Delta | undefined => deltasOf(send(open + like(inner))).at(-1);
    expect(lastDelta('"\\n\\\\"')).toEqual({ reasoning_content: '\n\\' });
    expect(lastDelta('"a","content":"b"')).toEqual({ reasoning_content: 'b' });
    expect(lastDelta('"a","reasoning_content":"R"')).toEqual({ reasoning_content: 'Ra' });
    expect(lastDelta('"a","role":"x"')).toEqual({ role: 'x', reasoning_content: 'a' });
    expect(lastDelta('"a</think>b"')).toEqual({ content: 'b' });
    expect(lastDelta('"a\\u003c/think>b"')).toEqual({ content: 'b' });
    expect(send(open + like('""')).endsWith(like('""'))).toBe(true);
    expect(send(open + like('"a\\"')).endsWith(like('"a\\"'))).toBe(true);
    const after = send(open + like('"</think>"') + like('"plain"'));
    expect(after.endsWith(like('"plain"'))).toBe(true);
    expect(deltasOf(send(`${open}${like('"a"')}`, 'strip'))).toEqual([]);
    const usage = `data: {"choices":[{"delta":{"content":"a"}}],"usage":{"n":1}}\n\n`;
    expect(send(open + usage + usage, 'strip')).toBe(usage.replace('"a"', '""').repeat(2));
  });

  it('sends a byte order mark once', () => {
    const sent = send(`\ufeff${chunk({ content: 'a<think>b</think>c' })}`);
    expect([sent.indexOf('\ufeff'), sent.lastIndexOf('\ufeff')]).toEqual([0, 0]);
    expect(read(sent.slice(1))).toEqual(reference('a<think>b</think>c'));
  });

  it('treats events without index as choice 0, and waits for every event only while it must', () => {
    const transform = new ThinkTagTransform('split');
    const push = (text: string): void =>
      new SseDecoder().push(Buffer.from(text), (event) => feed(transform, event, () => {}));
    expect(transform.needles).toEqual(['<', '\\u003', '"role"']);
    push(role);
    expect(transform.needles).toEqual(['<', '\\u003']);
    push('data: {"choices":[{"delta":{"content":"<thi"}}]}\n\n');
    expect(transform.needles).toBeNull();
    push(content('nk>a'));
    expect(transform.needles).toBeNull();
    push(content('</think>'));
    expect(transform.needles).toEqual(['<', '\\u003']);
  });
});

describe('ThinkTagTransform on whole answers', () => {
  function whole(text: string, mode: 'split' | 'strip' = 'split'): string {
    const answer = JsonDocument.parse(Buffer.from(text));
    new ThinkTagTransform(mode).whole(answer);
    return answer.toBuffer().toString();
  }
  const answer = (message: string): string => `{"n": 1.0,"choices":[{"x":1e5,"message":${message}}]}`;

  it('splits and strips', () => {
    expect(whole(answer('{"content":"<think>why\\n</think>\\nso"}'))).toBe(
      answer('{"content":"\\nso","reasoning_content":"why\\n"}'),
    );
    expect(whole(answer('{"content":"<think>why</think>so"}'), 'strip')).toBe(answer('{"content":"so"}'));
    expect(whole(answer('{"content":"\\u003cthink>a"}'))).toBe(
      answer('{"content":"","reasoning_content":"a"}'),
    );
    expect(whole(answer('{"content":"<think>a</think><think>b</think>c","reasoning_content":"R"}'))).toBe(
      answer('{"content":"c","reasoning_content":"Rab"}'),
    );
    expect(whole(answer('{"content":"<think></think>c"}'))).toBe(answer('{"content":"c"}'));
  });

  it('touches nothing else', () => {
    const same = [
      answer('{"content":"a</think><thi"}'),
      answer('{"content":["<think>"]}'),
      answer('{"content":null}'),
      answer('{"content":"<think>a","reasoning_content":{"a":1}}'),
      '{"choices":[1,null,{"message":"<think>"}],"x":"<think>"}',
      '{"choices":{"message":{"content":"<think>"}}}',
    ];
    for (const text of same) expect(whole(text)).toBe(text);
  });
});
