import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonDocument } from '../../common/json/json-document.js';
import { delta, DONE, event, finish } from '../../../test/support/answers.js';
import { ContinuedStream } from '../../../test/support/continued-stream.js';
import { joinDeltas } from '../../../test/support/sse-text.js';
import { ThinkTagTransform } from '../../reasoning/think-tag.transform.js';
import { RelayedAnswer } from './relayed-answer.js';

const REQUEST = Buffer.from('{"model":"m","stream":true,"messages":[]}');
const MODES = ['split', 'strip'] as const;
const ERROR = event({ error: { message: 'overloaded' } });
type Mode = (typeof MODES)[number];
type Break = 'reset' | 'error event' | 'last error event';
const BREAKS: readonly Break[] = ['reset', 'error event', 'last error event'];

function begin(mode: Mode): ContinuedStream {
  const answer = RelayedAnswer.of(JsonDocument.parse(REQUEST)) as RelayedAnswer;
  return new ContinuedStream(answer, () => [new ThinkTagTransform(mode)]);
}

/** What a whole text is, by the plain meaning of the tags. */
function parted(raw: string): { text: string; thought: string } {
  const sides = ['', ''];
  let side = 0;
  let from = 0;
  for (;;) {
    const tag = side === 0 ? '<think>' : '</think>';
    const at = raw.indexOf(tag, from);
    sides[side] += raw.slice(from, at < 0 ? undefined : at);
    if (at < 0) return { text: sides[0] ?? '', thought: sides[1] ?? '' };
    side = 1 - side;
    from = at + tag.length;
  }
}

/** In events of so many characters, the `<` plain or as Go's encoder writes it. */
function said(raw: string, size: number, escaped: boolean): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < raw.length; at += size) pieces.push(delta(raw.slice(at, at + size)));
  return pieces.map((piece) => (escaped ? piece.replaceAll('<', '\\u003c') : piece));
}

function breakOff(stream: ContinuedStream, pieces: readonly string[], how: Break): void {
  if (how === 'reset') stream.say(pieces, 'break');
  else if (how === 'error event') stream.say([...pieces, ERROR, delta('never')], 'end');
  else stream.say([...pieces, ERROR.trimEnd()], 'end');
}

interface Manner {
  readonly mode: Mode;
  readonly size: number;
  readonly escaped: boolean;
  readonly how: Break;
}

/** The first upstream says the first `cut` characters of a text, the second one what it makes of what it is asked. */
function checkCut(raw: string, cut: number, { escaped, how, mode, size }: Manner): void {
  const whole = parted(raw);
  const heard = parted(raw.slice(0, cut));
  const stream = begin(mode);
  breakOff(stream, said(raw.slice(0, cut), size, escaped), how);
  const got = stream.text();
  expect(stream.answer.text).toBe(got);
  const withheld = Buffer.concat([...stream.answer.withheld]).toString();
  // Whoever ends here has all that came, and half a tag as the text it is.
  expect(got + joinDeltas(withheld)).toBe(heard.text);
  const thoughts = stream.text('reasoning_content') + joinDeltas(withheld, 'reasoning_content');
  expect(thoughts).toBe(mode === 'split' ? heard.thought : '');
  if (stream.last.sink.ending !== undefined) {
    // Nothing but a thought, and perhaps the beginning of the next one.
    expect([mode, thoughts !== '', '<think>'.startsWith(got)]).toEqual(['split', true, true]);
    return;
  }
  // What the client has is the beginning of the answer, however the tag goes on.
  expect(whole.text.startsWith(got)).toBe(true);
  expect(heard.text.length - got.length).toBeLessThan('<think>'.length);
  const rest = whole.text.slice(got.length);
  // A rest that holds a tag of its own, or begins as an echo does, is another answer.
  if (got !== '' && (rest.includes('<think>') || rest.startsWith(got))) return;
  const second = got === '' ? raw : `<think>SECRET</think>${rest}`;
  stream.say([...said(second, size, escaped), finish(), DONE], 'end');
  expect(stream.text()).toBe(whole.text);
  if (mode === 'strip') expect(stream.text('reasoning_content')).toBe('');
  expect(stream.events.filter(({ data }) => data === '[DONE]')).toHaveLength(1);
}

const TEXTS = [
  '<think>SECRET</think>Answer',
  'Well <think>hm</think> so',
  'one<think>a</think>two<think>b</think>three',
  '<think></think>Answer <thin> </think> <b>',
  'a < b <t <<think>x</thi</think>y<',
  '<THINK>no</THINK><think>yes < </thin </think>é',
  '</think>stray<think>open',
];

describe('a stream with thoughts that another upstream continues', () => {
  it.each(TEXTS)('has nothing twice and loses nothing, whatever the tag that broke: %s', (raw) => {
    for (const mode of MODES)
      for (const escaped of [false, true])
        for (const how of BREAKS)
          for (let cut = 0; cut <= raw.length; cut++)
            checkCut(raw, cut, { mode, size: escaped ? 1 : 4, escaped, how });
  });

  it('does so for any text', () => {
    const token = fc.constantFrom(
      '<think>',
      '</think>',
      '<',
      '</',
      '<th',
      '</thi',
      'ink>',
      'a',
      'é',
      '😀',
      '\n',
    );
    const manner = fc.record({
      mode: fc.constantFrom(...MODES),
      size: fc.integer({ min: 1, max: 20 }),
      escaped: fc.boolean(),
      how: fc.constantFrom(...BREAKS),
    });
    const text = fc.array(token, { minLength: 1, maxLength: 12 }).map((tokens) => tokens.join(''));
    fc.assert(
      fc.property(text, fc.nat(), manner, (raw, at, how) => {
        checkCut(raw, at % (raw.length + 1), how);
      }),
      { numRuns: 400 },
    );
  });

  it('ends with the error where there is nothing but a thought', () => {
    const stream = begin('split');
    stream.say([delta('<think>hm</thi')], 'break');
    expect([stream.text(), stream.text('reasoning_content')]).toEqual(['', 'hm</thi']);
    expect(stream.last.sink.ending).toBe('endInterrupted');
    expect(stream.answer.withheld).toEqual([]);
  });

  it('forgets what one upstream held back as soon as another one goes on', () => {
    const stream = begin('split');
    stream.say([delta('a<th')], 'break');
    expect(joinDeltas(Buffer.concat([...stream.answer.withheld]).toString())).toBe('<th');
    expect(stream.say([delta('<t')], 'break').verdicts).toEqual(['fail net_err']);
    expect(joinDeltas(Buffer.concat([...stream.answer.withheld]).toString())).toBe('<th');
    stream.say([delta('b')], 'break');
    expect(stream.answer.withheld).toEqual([]);
    expect(stream.text()).toBe('ab');
  });

  it('a stage that holds the end of the answer back has a whole one', () => {
    const answer = RelayedAnswer.of(JsonDocument.parse(REQUEST)) as RelayedAnswer;
    const stream = new ContinuedStream(answer, () => {
      const held: Parameters<ThinkTagTransform['push']>[0][] = [];
      return [
        {
          needles: null,
          push: (one) => void held.push(one),
          flush: (emit) => held.splice(0).forEach(emit),
          whole: () => {},
        },
      ];
    });
    stream.say([delta('a'), finish()], 'break');
    expect(stream.sent).toBe(delta('a') + finish() + DONE);
    expect(stream.last.sink.ending).toBe('end');
  });
});
