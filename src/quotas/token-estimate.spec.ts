import { describe, expect, it, vi } from 'vitest';
import { JsonDocument } from '../common/json/json-document.js';
import { tokensOfBytes, tokensToReserve } from './token-estimate.js';

const document = (text: string) => JsonDocument.parse(Buffer.from(text));

describe('tokensToReserve', () => {
  it.each([
    ['{"a":"bcdefghijk"}', 1000],
    ['{"max_tokens":50}', 50],
    ['{"max_tokens":0}', 0],
    ['{"max_completion_tokens":7,"max_tokens":50}', 7],
    ['{"max_output_tokens":9}', 9],
    ['{"max_tokens":null,"max_output_tokens":9}', 9],
    ['{"max_tokens":2.5}', 3],
    ['{"max_tokens":-1}', 1000],
    ['{"max_tokens":"50"}', 1000],
    ['{"max_tokens":1e999}', 1_000_000],
    ['{"max_tokens":1e300}', 1_000_000],
    ['{"max_tokens":[1]}', 1000],
  ])('of %s is its bytes / 4 and %d', (text, answer) => {
    expect(tokensToReserve(document(text))).toBe(Math.ceil(Buffer.byteLength(text) / 4) + answer);
  });
});

describe('tokensOfBytes', () => {
  it.each([
    [0, 0],
    [1, 1],
    [4, 1],
    [5, 2],
  ])('%d bytes are %d tokens', (bytes, tokens) => {
    expect(tokensOfBytes(bytes)).toBe(tokens);
  });

  it('decodes nothing but a number', () => {
    const parse = vi.spyOn(JSON, 'parse');
    const body = JsonDocument.parse(
      Buffer.from('{"max_tokens":[{},{}],"max_completion_tokens":{},"max_output_tokens":7}'),
    );
    expect(tokensToReserve(body)).toBe(Math.ceil(body.byteLength / 4) + 7);
    expect(parse.mock.calls).toEqual([['7']]);
    vi.restoreAllMocks();
  });
});
