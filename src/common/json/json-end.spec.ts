import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonEnd } from './json-end.js';

function reached(bytes: Buffer, pieceBytes: number): boolean {
  const end = new JsonEnd();
  for (let i = 0; i < bytes.length; i += pieceBytes) end.push(bytes.subarray(i, i + pieceBytes));
  return end.reached;
}

describe('JsonEnd', () => {
  it('is reached at the end of an object or array, and at no byte before it, however it is cut into pieces', () => {
    const containers = fc.oneof(fc.array(fc.jsonValue()), fc.dictionary(fc.string(), fc.jsonValue()));
    fc.assert(
      fc.property(containers, fc.integer({ min: 1, max: 9 }), fc.nat(), (value, pieceBytes, cut) => {
        const bytes = Buffer.from(` ${JSON.stringify(value, null, 1)}`);
        expect(reached(bytes, pieceBytes)).toBe(true);
        expect(reached(Buffer.concat([bytes, Buffer.from('\r\n ')]), pieceBytes)).toBe(true);
        expect(reached(bytes.subarray(0, cut % bytes.length), pieceBytes)).toBe(false);
      }),
    );
  });

  it.each([
    ['', false],
    [' \n', false],
    ['"a\\"', false],
    ['"a\\\\"', true],
    ['"{"', true],
    ['12', true],
    ['nul', true],
    ['[1,2', false],
    ['{"a":"]}"', false],
  ])('%j: %s', (text, whole) => {
    expect(reached(Buffer.from(text), 1)).toBe(whole);
  });
});
