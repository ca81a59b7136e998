import { describe, expect, it } from 'vitest';
import { mediaType } from './media-type.js';

describe('mediaType', () => {
  it.each([
    ['application/json', 'application/json'],
    ['Application/JSON ; charset=utf-8', 'application/json'],
    ['text/event-stream;charset=utf-8;x=y', 'text/event-stream'],
    [' ; charset=utf-8', ''],
    ['', ''],
    [undefined, ''],
  ])('%j is %j', (contentType, expected) => {
    expect(mediaType(contentType)).toBe(expected);
  });
});
