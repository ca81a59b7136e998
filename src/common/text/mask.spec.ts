import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maskIn, maskSecret, printable } from './mask.js';

describe('maskSecret', () => {
  it.each([
    ['', '…'],
    ['short', '…'],
    ['elevenchars', '…'],
    ['twelve-chars', 'twe…hars'],
    ['sk-abcdefgh1234', 'sk-…1234'],
  ])('%j prints as %s', (secret, shown) => {
    expect(maskSecret(secret)).toBe(shown);
  });
});

describe('maskIn', () => {
  it('replaces every copy', () => {
    expect(maskIn('a sk-abcdefgh1234 b sk-abcdefgh1234', ['sk-abcdefgh1234'])).toBe('a sk-…1234 b sk-…1234');
  });
  it('is not fooled by replacement patterns in the secret', () => {
    expect(maskIn('x $&$`$1abcdefghij y', ['$&$`$1abcdefghij'])).toBe('x $&$…ghij y');
  });
  it('leaves no tail of a secret that another one begins', () => {
    expect(maskIn('sk-abcdefgh1234-tail-5678', ['sk-abcdefgh1234', 'sk-abcdefgh1234-tail-5678'])).toBe(
      'sk-…5678',
    );
  });
  it('ignores an empty secret', () => {
    expect(maskIn('text', [''])).toBe('text');
  });
  it('never leaves a whole secret of some length behind', () => {
    const secret = fc.string({ minLength: 12, maxLength: 30 }).filter((text) => !text.includes('…'));
    fc.assert(
      fc.property(secret, fc.string(), fc.string(), (hidden, before, after) => {
        expect(maskIn(before + hidden + after, [hidden])).not.toContain(hidden);
      }),
    );
  });
});

describe('printable', () => {
  it.each([
    ['plain ünïcode ✓ 😀', 'plain ünïcode ✓ 😀'],
    ['a\r\nb\tc', 'a\\r\\nb\\tc'],
    ['\u001b[31m\u0000\u007f\u0085', '\\u001b[31m\\u0000\\u007f\\u0085'],
    ['a\u2028b\u2029c', 'a\\u2028b\\u2029c'],
    ['\ud800x\udc00', '\\ud800x\\udc00'],
    ['\u202eevil\u2066\u200f', '\\u202eevil\\u2066\\u200f'],
  ])('%j prints as %j', (text, shown) => {
    expect(printable(text)).toBe(shown);
  });
  it('is bounded, and does not tear a character apart', () => {
    expect(printable('x'.repeat(1000), 5)).toBe('xxxxx…');
    expect(printable('ab😀cd', 3)).toBe('ab…');
    expect(printable('x'.repeat(200))).toBe('x'.repeat(200));
  });
  it('holds no control character and no lone surrogate for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
        expect(printable(text)).not.toMatch(/[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u);
      }),
    );
  });
});
