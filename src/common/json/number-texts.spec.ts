import { describe, expect, it } from 'vitest';
import { encodeMember, keepNumberText, oddNumberText } from './number-texts.js';

describe('number texts', () => {
  it.each(['1.0', '1e5', '1E+2', '-0', '0.10', '-0.0', '0.1234567890123456789'])('are kept: %s', (text) => {
    expect(oddNumberText(Number(text), text)).toBe(text);
  });

  it.each([
    [1, '1'],
    [0.5, '.5'],
    [1, '+1'],
    [16, '0x10'],
    [1, '1.'],
    [1, '01'],
    [Infinity, '1e400'],
    ['1.0', '1.0'],
    [1, undefined],
  ])('are not kept where JSON has no such number or it is written so anyway: %s from %s', (value, source) => {
    expect(oddNumberText(value, source)).toBeUndefined();
  });

  it('stand in the JSON of a member, at any depth; big integers keep their digits', () => {
    const list = [1, { c: 2 }];
    const holder = { a: 1, list, big: 12345678901234567890n, none: undefined };
    keepNumberText(holder, 'a', '1.0');
    keepNumberText(list, 0, '1e0');
    keepNumberText(list[1] as object, 'c', '2.00');
    const json = (key: string) => encodeMember(holder, key)?.toString();
    expect([json('a'), json('list'), json('big'), json('none')]).toEqual([
      '1.0',
      '[1e0,{"c":2.00}]',
      '12345678901234567890',
      undefined,
    ]);
  });
});
