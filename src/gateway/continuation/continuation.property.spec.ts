import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunk, delta, DONE, event, finish, usage } from '../../../test/support/answers.js';
import { ContinuedStream } from '../../../test/support/continued-stream.js';
import { JsonDocument } from '../../common/json/json-document.js';
import { ThinkTagTransform } from '../../reasoning/think-tag.transform.js';
import { RelayedAnswer } from './relayed-answer.js';

const REQUEST = Buffer.from('{"model":"m","stream":true,"messages":[]}');
const OTHERS = [': ping\n\n', delta({}), event({ ...chunk({}), choices: [] })];

function answer(): RelayedAnswer {
  return RelayedAnswer.of(JsonDocument.parse(REQUEST)) as RelayedAnswer;
}

/** Of one, two, three and four bytes, escapes, and what JSON must escape; some hold their own beginning again. */
const text = fc
  .array(fc.constantFrom('a', 'b', ' ', 'é', '語', '😀', '"', '\\', '\n', '<', 'data: ', '\u0000', 'Hello'), {
    minLength: 1,
    maxLength: 14,
  })
  .map((pieces) => pieces.join(''));

/** How one upstream cuts and breaks. */
const manner = fc.record({
  pieces: fc.array(fc.nat(30), { maxLength: 6 }),
  chunks: fc.array(fc.nat(), { maxLength: 6 }),
  breaksAt: fc.nat(),
  echo: fc.boolean(),
  others: fc.array(fc.nat(OTHERS.length - 1), { maxLength: 4 }),
  ending: fc.boolean(),
});
type Manner = (typeof manner extends fc.Arbitrary<infer T> ? T : never) & object;

function cut<T extends string | Buffer>(whole: T, at: readonly number[]): T[] {
  const places = [...at.map((place) => place % (whole.length + 1)), 0, whole.length].sort((a, b) => a - b);
  return places.slice(1).map((end, i) => whole.slice(places[i], end) as T);
}

/** All that an upstream would say of this text, in events of its own. */
function said(rest: string, { others, pieces }: Manner, id: string): Buffer {
  const events = [
    delta({ role: 'assistant', content: '' }),
    ...cut(rest, pieces).map((piece) => delta(piece)),
  ];
  for (const [i, other] of others.entries())
    events.splice((i * 3) % events.length, 0, OTHERS[other] as string);
  events.push(finish(), event({ id: 'c1', choices: [], usage }), DONE);
  return Buffer.from(events.join('').replaceAll('"c1"', `"${id}"`));
}

/** The upstreams one after the other; the last one does not break. */
function play(stream: ContinuedStream, whole: string, manners: readonly Manner[]): void {
  for (const [i, one] of manners.entries()) {
    const begun = stream.answer.text;
    const rest = whole.slice(begun.length);
    const echo = begun !== '' && one.echo;
    // A continuation that begins with all that came before cannot be told from an echo: see docs/streams.md.
    fc.pre(echo || begun === '' || !rest.startsWith(begun));
    const bytes = said(echo ? begun + rest : rest, one, `id-${i}`);
    const last = i === manners.length - 1;
    const heard = last ? bytes : bytes.subarray(0, one.breaksAt % (bytes.length + 1));
    const host = stream.say(cut(heard, one.chunks), last ? 'end' : 'break');
    if (host.sink.ending !== undefined) return;
  }
}

function checkWhole(stream: ContinuedStream): void {
  const { events } = stream;
  expect(events.filter(({ data }) => data === '[DONE]')).toHaveLength(1);
  expect(events.at(-1)?.data).toBe('[DONE]');
  const chunks = events.filter(({ data }) => data !== undefined && data !== '' && data !== '[DONE]');
  expect(chunks.filter(({ json }) => json === undefined)).toEqual([]);
  expect(new Set(chunks.map(({ json }) => json?.string('id'))).size).toBeLessThanOrEqual(1);
  expect(stream.text('role').split('assistant').length).toBeLessThanOrEqual(2);
}

describe('a continued stream, at any cut', () => {
  it('gives every character once, in order, whatever breaks where', () => {
    fc.assert(
      fc.property(text, fc.array(manner, { minLength: 1, maxLength: 4 }), (whole, manners) => {
        const stream = new ContinuedStream(answer());
        play(stream, whole, manners);
        expect(stream.text()).toBe(whole);
        checkWhole(stream);
      }),
      { numRuns: 400 },
    );
  });

  it('gives every character once at every single byte', () => {
    const whole = 'Hé"語😀\n<b>';
    const first = said(
      whole,
      { pieces: [1, 2, 5, 7], others: [0, 1], chunks: [], breaksAt: 0, echo: false, ending: false },
      'a',
    );
    for (let at = 0; at <= first.length; at++) {
      const stream = new ContinuedStream(answer());
      const host = stream.say([first.subarray(0, at)], 'break');
      if (host.sink.ending === undefined) {
        const rest = whole.slice(stream.answer.text.length);
        const second = said(
          rest,
          { pieces: [1], others: [2], chunks: [], breaksAt: 0, echo: false, ending: false },
          'b',
        );
        stream.say([second], 'end');
      }
      expect(stream.text(), `cut at byte ${at}`).toBe(whole);
      checkWhole(stream);
    }
  });

  it('splits think tags as in an answer of one piece', () => {
    const thought = fc.record({ before: text, inside: text, after: text });
    fc.assert(
      fc.property(thought, manner, manner, ({ before, inside, after }, one, other) => {
        fc.pre(!(before + inside + after).includes('<'));
        const stream = new ContinuedStream(answer(), () => [new ThinkTagTransform('split')]);
        const raw = `${before}<think>${inside}</think>${after}`;
        const bytes = said(raw, one, 'a');
        const host = stream.say(
          cut(bytes.subarray(0, one.breaksAt % (bytes.length + 1)), one.chunks),
          'break',
        );
        if (host.sink.ending === undefined) {
          // It has no thoughts of its own left to think: what it gets is what the client has as text.
          const begun = stream.answer.text;
          const rest = (before + after).slice(begun.length);
          fc.pre(begun === '' || !rest.startsWith(begun));
          stream.say([said(rest, other, 'b')], 'end');
        }
        expect(stream.text()).toBe(before + after);
        // As at the end of any answer, half a closing tag belongs to the thought.
        expect(`${inside}</think>`.startsWith(stream.text('reasoning_content'))).toBe(true);
        checkWhole(stream);
      }),
      { numRuns: 300 },
    );
  });
});
