import { describe, expect, it } from 'vitest';
import { delta, DONE, event, finish, usage } from '../../../test/support/answers.js';
import { StreamTail } from './stream-tail.js';

const ROLE = delta({ role: 'assistant', content: '' });
const PING = ': ping\n\n';
const CALL = delta({ tool_calls: [{ index: 0, function: { arguments: '{' } }] });

function phaseOf(pieces: readonly string[]): string {
  const tail = new StreamTail();
  for (const piece of pieces) tail.saw(Buffer.from(piece));
  return tail.phase();
}

describe('StreamTail', () => {
  it.each<[string, string[]]>([
    ['before_content', []],
    ['before_content', [PING]],
    ['before_content', [ROLE, PING, PING, PING, delta('')]],
    ['before_content', [delta({ content: null, tool_calls: [] }), PING, PING]],
    ['content', [ROLE, delta('a')]],
    ['content', [ROLE + delta('a'), PING, PING, PING]],
    ['content', [ROLE, delta({ reasoning_content: 'a' }), PING, PING, PING]],
    ['content', [delta('a'), 'data: {"choi', 'ces":[{"del', 'ta":{"cont']],
    ['content', [delta('{"finish_reason":"stop"}'), delta('a')]],
    ['tool_calls', [ROLE, delta('a'), CALL]],
    ['tool_calls', [ROLE, CALL, CALL.slice(0, 20)]],
    ['after_finish', [ROLE, delta('a'), finish()]],
    ['after_finish', [ROLE, delta('a'), finish('tool_calls'), event({ choices: [], usage })]],
    ['after_finish', [delta('a'), delta('b'), DONE]],
  ])('%s', (phase, pieces) => {
    expect(phaseOf(pieces)).toBe(phase);
  });

  it('is not ended by an event that nobody could hold', () => {
    expect(phaseOf([delta('a'), `data: ${'x'.repeat(17 * 1024 * 1024)}`])).toBe('content');
  });
});

describe('the end of a stream that broke', () => {
  const done = (...chunks: string[]): boolean => {
    const tail = new StreamTail();
    for (const chunk of chunks) tail.saw(Buffer.from(chunk));
    return tail.done;
  };
  const text = 'data: {"choices":[]}\n\n';

  it.each([
    [[text, 'data: [DONE]\n\n']],
    [[`${text}data: [DONE]\n\n`]],
    [[text, 'data: [DO', 'NE]\n\n'].slice(1)],
    [[text, 'data: [DONE]\r\n\r\n\r\n']],
    [[text, text, text, 'data: [DONE]\n\n: bye\n\n']],
  ])('has its [DONE]: %j', (chunks) => expect(done(...chunks)).toBe(true));

  it.each([
    [[text]],
    [[text, 'data: [DONE]']],
    [[text, 'data: [DONE]\n\ndata: {"a"']],
    [[text, 'data: [DONE]\n\n', text]],
    [[text, ': ', 'data: [DONE]', '\n\n']],
    [['data: {"x":\n', 'data: [DONE]\n', '\n']],
    // Only what two chunks tell is known.
    [[text, 'data: [DONE]\n\n', ': bye\n\n']],
    [[]],
  ])('has none: %j', (chunks) => expect(done(...chunks)).toBe(false));
});
