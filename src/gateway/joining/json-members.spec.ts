import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StreamLimitError } from '../../common/sse/stream-limit.js';
import { HELD_LIMIT } from './join-budget.js';
import { eachItem, membersOf, numberOf } from './json-members.js';

const parsed = (raw: Buffer): unknown => JSON.parse(raw.toString());
const texts = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('"', '\\', '\\"', `${'a'.repeat(40)}"`, `${'"\\'.repeat(300)}`, 'b'.repeat(3000)),
);
const values = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    texts,
    fc.constantFrom<unknown>(null, true, -1.5e-7, 0),
    fc.array(tie('value'), { maxLength: 4 }),
    // Trap: V8 can take a key `"` for the key `\` that it met in that place of another object.
    fc.dictionary(fc.constantFrom('a', 'bc', 'ü', '1'), tie('value'), { maxKeys: 4 }),
  ),
})).value;
const spaces = fc.constantFrom(0, 2);

describe('membersOf and eachItem', () => {
  it('find what was written', () => {
    fc.assert(
      fc.property(fc.dictionary(texts, values), spaces, (object, space) => {
        const text = JSON.stringify(object, null, space);
        const found = [...membersOf(Buffer.from(` ${text}\n`))].map(([key, raw]) => [key, parsed(raw)]);
        expect(found).toEqual(Object.entries(object));
      }),
    );
    fc.assert(
      fc.property(fc.array(values), spaces, (list, space) => {
        const found: unknown[] = [];
        const text = JSON.stringify(list, null, space);
        eachItem(Buffer.from(text), (raw) => found.push(parsed(raw)));
        expect(found).toEqual(list);
      }),
    );
  });

  it('take the last of two members with one key, escapes or not', () => {
    const members = membersOf(Buffer.from('{"a":1,"b":{"a":3}, "\\u0061" : 2 }'));
    expect([...members].map(([key, raw]) => [key, raw.toString()])).toEqual([
      ['a', '2'],
      ['b', '{"a":3}'],
    ]);
  });

  it('hold so many members and no more', () => {
    const object = (count: number): Buffer =>
      Buffer.from(`{${Array.from({ length: count }, (_, i) => `"${i}":null`).join()}}`);
    expect(membersOf(object(HELD_LIMIT)).size).toBe(HELD_LIMIT);
    expect(() => membersOf(object(HELD_LIMIT + 1))).toThrow(StreamLimitError);
  });
});

describe('numberOf', () => {
  it.each([
    ['0', 0],
    ['-1.5e3', -1500],
    ['1e999', Infinity],
    ['"1"', undefined],
    ['[1]', undefined],
    ['{}', undefined],
    ['null', undefined],
    ['true', undefined],
  ])('%s', (text, value) => {
    expect(numberOf(Buffer.from(text))).toBe(value);
    expect(numberOf(undefined)).toBeUndefined();
  });
});
