import { describe, expect, it } from 'vitest';
import { kindByContentType } from './answer-kind.js';

describe('the kind of an answer by its content type', () => {
  it.each([
    ['application/json', 'json'],
    ['Application/JSON;charset=utf-8', 'json'],
    ['application/problem+json', 'json'],
    ['text/json', 'json'],
    ['text/event-stream', 'sse'],
    ['text/event-stream; charset=utf-8', 'sse'],
    ['text/html', 'other'],
    ['application/jsonl', 'other'],
    ['audio/mpeg', 'other'],
    ['', null],
  ])('%s', (type, kind) => expect(kindByContentType({ 'content-type': type })).toBe(kind));

  it('none', () => expect(kindByContentType({})).toBeNull());
});
