import { describe, expect, it } from 'vitest';
import { isCut, isWhole } from './open-event.js';
import { SseEvent } from './sse-event.js';

describe('the last event of a stream, without its blank line', () => {
  it.each<[string, boolean, boolean]>([
    ['data: {"a":1}', false, true],
    ['data:{"a":\ndata: 1}\n', false, true],
    ['event: e\ndata: {"a":1}\r\n', false, true],
    ['data: [DONE]', false, true],
    [': comment', false, true],
    ['\n', false, true],
    ['data: {"id', true, false],
    ['data: { ', true, false],
    ['event: e\ndata: {"a":1', true, false],
    ['data: {"a":1}\ndata: {"b', true, false],
    ['data: {"a":"}"', true, false],
    ['data: {"a":"\\\\"', true, false],
    ['data: {"a":"\\"}', true, false],
    ['data: {"a":[1,2}', true, false],
    ['data: {"a":1}\ndata: [DONE]\n', false, false],
    ['data: {"a":1}\ndata: {"b":2}\n', false, false],
    ['data: {"a":1} x', false, false],
    ['data: {not json}', false, false],
    ['data: last', false, false],
    ['data: [DO', false, false],
    ['data: ', false, false],
    ['da', false, false],
    [': comment\nevent: e', false, false],
  ])('%j: cut %s, whole %s', (raw, cut, whole) => {
    const event = new SseEvent(Buffer.from(raw));
    expect([isCut(event), isWhole(event)]).toEqual([cut, whole]);
  });
});
