import { afterEach, describe, expect, it, vi } from 'vitest';
import { SseEvent } from '../../common/sse/sse-event.js';
import { StreamLimitError } from '../../common/sse/stream-limit.js';
import { CompletionJoiner } from './completion-joiner.js';
import { HELD_LIMIT } from './join-budget.js';

function joiner(chunks: readonly string[]): CompletionJoiner {
  const result = new CompletionJoiner();
  for (const chunk of chunks) result.push(SseEvent.of(chunk));
  return result;
}

const chunkOf = (inner: string): string => `{"choices":[{"delta":${inner}}]}`;

/** Items and bytes that are copied to join so many events. */
function copied(chunk: string, events: number): number {
  let sum = 0;
  const count = <T extends { readonly length: number }>(made: T): T => {
    sum += made.length;
    return made;
  };
  const { concat } = Array.prototype;
  const { copy } = Buffer.prototype;
  const together = Buffer.concat.bind(Buffer);
  vi.spyOn(Array.prototype, 'concat').mockImplementation(function (this: unknown[], ...more: unknown[]) {
    return count(concat.apply(this, more));
  });
  vi.spyOn(Buffer.prototype, 'copy').mockImplementation(function (this: Buffer, ...place) {
    const length = copy.apply(this, place);
    sum += length;
    return length;
  });
  vi.spyOn(Buffer, 'concat').mockImplementation((...list) => count(together(...list)));
  try {
    const one = new CompletionJoiner();
    for (let i = 0; i < events; i++) one.push(SseEvent.of(chunk));
    one.result();
  } finally {
    vi.restoreAllMocks();
  }
  return sum;
}

describe('CompletionJoiner: what joining costs', () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it.each([
    '{"a":{"b":[1]}}',
    '{"tool_calls":[{"index":0,"z":[1]}]}',
    '{"tool_calls":[{"index":0,"function":{"z":{"y":[1]}}}]}',
    '{"content":"a","refusal":"b","audio":{"data":"c"}}',
  ])('copies no more for the last events than for the first ones: %s', (inner) => {
    const [few, many] = [500, 2000].map((events) => copied(chunkOf(inner), events)) as [number, number];
    expect(few).toBeGreaterThan(500);
    expect(many).toBeLessThan(4.5 * few);
  });

  it('copies a large list once when small ones follow', () => {
    const large = chunkOf(`{"a":{"b":[${'1,'.repeat(100_000)}1]}}`);
    const concat = vi.spyOn(Array.prototype, 'concat');
    const copy = vi.spyOn(Buffer.prototype, 'copy');
    const one = joiner([large, ...Array.from({ length: 50 }, () => chunkOf('{"a":{"b":[2]}}'))]);
    const longest = concat.mock.results.map(({ value }) => (value as unknown[]).length);
    expect(Math.max(0, ...longest)).toBeLessThan(100);
    const copies = copy.mock.results.filter(({ value }) => (value as number) > 100_000);
    expect(copies.length).toBeLessThan(4);
    vi.restoreAllMocks();
    expect(one.result().toString()).toContain(`${'1,'.repeat(100_000)}1${',2'.repeat(50)}]`);
  });

  it('makes no values of what it joins', () => {
    const parse = vi.spyOn(JSON, 'parse');
    const list = `[${'{},'.repeat(30_000)}{}]`;
    const call = `[{"index":0,"id":${list},"function":{"name":${list},"arguments":${list}}}]`;
    const chunk = chunkOf(`{"x":${list},"o":{"p":${list}},"content":"a","tool_calls":${call}}`);
    const one = joiner([chunk, chunk]);
    const body = one.result().toString();
    for (const [text] of parse.mock.calls) expect(text.length).toBeLessThanOrEqual(64 * 1024);
    vi.restoreAllMocks();
    const joined = JSON.parse(body) as {
      choices: { message: { x: unknown[]; o: { p: unknown[] }; tool_calls: object[] } }[];
    };
    const { x, o, tool_calls: calls } = joined.choices[0]!.message;
    expect([x.length, o.p.length]).toEqual([60_002, 60_002]);
    expect(calls).toEqual([{ type: 'function', function: { name: '', arguments: `${list}${list}` } }]);
  });

  it('finds a fault in a large value', () => {
    const broken = `[${'{},'.repeat(100_000)}{]`.replace('{]', '{},]');
    for (const chunk of [chunkOf(`{"x":${broken}}`), `{"choices":[],"usage":{"x":${broken}}}`])
      expect(joiner([chunkOf('{"content":"a"}'), chunk]).fault).not.toBeNull();
  });

  it('joins long lists of log probabilities', () => {
    const tokens = `[${'0,'.repeat(200_000)}0]`;
    const chunk = `{"choices":[{"logprobs":{"content":${tokens}}}]}`;
    const joined = JSON.parse(joiner([chunk, chunk]).result().toString()) as {
      choices: { logprobs: { content: unknown[] } }[];
    };
    expect(joined.choices[0]?.logprobs.content).toHaveLength(400_002);
  });

  it('looks through so many members of one object and no more, whatever they hold', () => {
    const nulls = `{${Array.from({ length: HELD_LIMIT + 1 }, (_, i) => `"${i}":null`).join()}}`;
    for (const chunk of [
      nulls,
      `{"choices":[${nulls}]}`,
      chunkOf(nulls),
      chunkOf(`{"tool_calls":[${nulls}]}`),
    ])
      expect(() => joiner([chunk])).toThrow(StreamLimitError);
    // Nobody has to look into it.
    expect(joiner([chunkOf(`{"x":${nulls}}`)]).fault).toBeNull();
    expect(() => joiner([chunkOf(`{"x":${nulls}}`), chunkOf(`{"x":${nulls}}`)])).toThrow(StreamLimitError);
  });

  it('holds so many tool calls in all choices together', () => {
    const calls = Array.from({ length: 1000 }, (_, index) => ({ index }));
    const choice = (index: number): string =>
      JSON.stringify({ choices: [{ index, delta: { tool_calls: calls } }] });
    const choices = Array.from({ length: HELD_LIMIT / 1000 + 1 }, (_, index) => choice(index));
    expect(() => joiner(choices.slice(2))).not.toThrow();
    expect(() => joiner(choices)).toThrow(StreamLimitError);
  });
});
