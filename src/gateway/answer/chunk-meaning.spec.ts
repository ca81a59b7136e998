import { describe, expect, it } from 'vitest';
import { chunk, delta, DONE, event, finish, usage } from '../../../test/support/answers.js';
import { SseEvent } from '../../common/sse/sse-event.js';
import { Brings, isErrorEvent, MEANINGFUL, meaningOf } from './chunk-meaning.js';

const of = (text: string): number => meaningOf(new SseEvent(Buffer.from(text)));

describe('meaningOf', () => {
  it.each<[string, string]>([
    ['a comment', ': ping\n\n'],
    ['an event without data', 'event: ping\n\n'],
    ['empty data', 'data:\n\n'],
    ['a role', delta({ role: 'assistant' })],
    ['a role with empty content', delta({ role: 'assistant', content: '' })],
    ['content null', delta({ role: 'assistant', content: null })],
    ['an empty delta', delta({})],
    ['empty lists', delta({ content: [], tool_calls: [], reasoning_details: [] })],
    ['an empty finish reason', delta({}, { finish_reason: '' })],
    ['a chunk without choices', event({ ...chunk({}), choices: [], prompt_filter_results: [] })],
    ['a usage chunk', event({ choices: [], usage })],
    ['error: null', event({ ...chunk({}), error: null })],
  ])('%s brings nothing', (_name, text) => {
    expect(of(text)).toBe(Brings.nothing);
  });

  it.each<[string, string, number]>([
    ['text', delta('a'), Brings.text],
    ['white space, which is text', delta(' '), Brings.text],
    ['text beside a role', delta({ role: 'assistant', content: 'a' }), Brings.text],
    ['text of a plain completion', event({ choices: [{ index: 0, text: 'a' }] }), Brings.text],
    ['a whole message', event({ choices: [{ message: { content: 'a' } }] }), Brings.text],
    ['reasoning_content', delta({ reasoning_content: 'a' }), Brings.reasoning],
    ['reasoning', delta({ content: '', reasoning: 'a' }), Brings.reasoning],
    ['reasoning_details', delta({ reasoning_details: [{ text: 'a' }] }), Brings.reasoning],
    ['a tool call', delta({ tool_calls: [{ index: 0 }] }), Brings.toolCalls],
    ['a function call', delta({ function_call: { name: 'f' } }), Brings.toolCalls],
    ['a refusal', delta({ refusal: 'no' }), Brings.other],
    ['audio', delta({ audio: { data: 'a' } }), Brings.other],
    ['content in parts', delta({ content: [{ type: 'text', text: 'a' }] }), Brings.other],
    ['a finish reason', finish(), Brings.finishReason],
    ['[DONE]', DONE, Brings.unreadable],
    ['broken JSON', 'data: {"choices\n\n', Brings.unreadable],
    ['JSON that is no object', 'data: 1\n\n', Brings.unreadable],
    [
      'the second choice',
      event(chunk({}, { choices: [{ delta: {} }, { delta: { content: 'a' } }] })),
      Brings.text,
    ],
  ])('%s', (_name, text, brings) => {
    expect(of(text)).toBe(brings);
    expect(of(text) & MEANINGFUL).not.toBe(0);
  });

  it.each<[string, string, boolean]>([
    ['alone', event({ error: { message: 'x' } }), true],
    ['as a text', event({ error: 'x' }), true],
    ['beside choices: null', event({ error: {}, choices: null }), true],
    [
      'beside an empty choice that ends with it',
      event({ ...chunk({ finish_reason: 'error' }), error: {} }),
      true,
    ],
    ['behind a text of the same event', event({ ...chunk({ delta: { content: 'a' } }), error: {} }), false],
  ])('an error %s', (_name, text, isError) => {
    expect(of(text) & Brings.error).not.toBe(0);
    expect(isErrorEvent(of(text))).toBe(isError);
  });
});
