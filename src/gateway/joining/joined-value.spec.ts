import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StreamLimitError } from '../../common/sse/stream-limit.js';
import { HELD_LIMIT, JoinBudget, WALKED_LIMIT_BYTES } from './join-budget.js';
import { JoinedFields, NAMES } from './joined-value.js';
import { JoinedText } from './joined-text.js';

type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const written = (value: JoinedFields | JoinedText): string => {
  const parts: Buffer[] = [];
  value.into(parts);
  return Buffer.concat(parts).toString();
};

/** The same rules over values that are made. */
function expected(target: Fields, key: string, value: unknown, depth = 0): void {
  const present = target[key];
  if (value === null) target[key] ??= null;
  else if (typeof value === 'string') {
    if (typeof present !== 'string' || present === '') target[key] = value;
    else if (!NAMES.has(key)) target[key] = present + value;
  } else if (Array.isArray(value)) target[key] = Array.isArray(present) ? [...present, ...value] : value;
  else if (isFields(value) && depth < 32) {
    const fields = isFields(present) ? present : (Object.create(null) as Fields);
    for (const [name, inner] of Object.entries(value)) expected(fields, name, inner, depth + 1);
    target[key] = fields;
  } else target[key] = value;
}

const keys = fc.constantFrom('a', 'b', 'name', 'type', '__proto__', 'ü"');
const { value: values } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom<unknown>(null, true, 1, -2.5),
    fc.constantFrom('', 'x', '"\\', '😀', '\ud83d', '\ude00'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(keys, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
}));

function join(pieces: readonly unknown[], space = 0): string {
  const fields = new JoinedFields(new JoinBudget());
  for (const piece of pieces) fields.add('k', Buffer.from(JSON.stringify(piece, null, space)));
  return written(fields);
}

describe('JoinedValue', () => {
  it('joins bytes as values are joined', () => {
    fc.assert(
      fc.property(
        fc.array(values, { minLength: 1, maxLength: 6 }),
        fc.constantFrom(0, 1),
        (pieces, space) => {
          const target = Object.create(null) as Fields;
          for (const piece of pieces) expected(target, 'k', JSON.parse(JSON.stringify(piece)));
          expect(JSON.parse(join(pieces, space))).toEqual(JSON.parse(JSON.stringify(target)));
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('replaces what is deeper than 32 objects', () => {
    const nested = (depth: number, leaf: object): unknown =>
      depth === 0 ? leaf : { a: nested(depth - 1, leaf) };
    const merged = (depth: number): boolean =>
      join([nested(depth, { x: 1 }), nested(depth, { y: 1 })]).includes('x');
    expect([merged(31), merged(32)]).toEqual([true, false]);
  });

  it('leaves every byte of a value that is not merged', () => {
    const fields = new JoinedFields(new JoinBudget());
    fields.add('a', Buffer.from('{ "n": 1.0, "n":12345678901234567890, "s":"\\u0061" }'));
    fields.add('b', Buffer.from('[ 1e2 ]'));
    fields.add('b', Buffer.from('[ ]'));
    fields.add('b', Buffer.from('[\n{"x": 1} ]'));
    expect(written(fields)).toBe(
      '{"a":{ "n": 1.0, "n":12345678901234567890, "s":"\\u0061" },"b":[1e2,{"x": 1}]}',
    );
  });

  it('holds so many members that are merged, at any depth, and no more', () => {
    const fields = new JoinedFields(new JoinBudget());
    const add = (from: number, to: number): void => {
      const keysOf = Array.from({ length: to - from }, (_, i) => `"${from + i}":{}`);
      fields.add('k', Buffer.from(`{"a":{${keysOf.join()}}}`));
    };
    // Two of them are `k` and `a`.
    add(0, HELD_LIMIT / 2);
    add(HELD_LIMIT / 2, HELD_LIMIT - 2);
    add(0, 10);
    expect(() => add(HELD_LIMIT - 2, HELD_LIMIT - 1)).toThrow(StreamLimitError);
  });

  it('does not read large objects again and again', () => {
    const fields = new JoinedFields(new JoinBudget());
    const levels = 30;
    const large = Buffer.from(
      `${'{"a":'.repeat(levels)}"${'x'.repeat(4 * 1024 * 1024)}"${'}'.repeat(levels)}`,
    );
    const room = Math.floor(WALKED_LIMIT_BYTES / (levels * large.length));
    expect(() => {
      for (let i = 0; i <= room; i++) fields.add('k', large);
    }).toThrow(StreamLimitError);
    const flat = new JoinedFields(new JoinBudget());
    for (let i = 0; i <= room; i++) flat.add('k', Buffer.from(`{"a":"${'x'.repeat(large.length)}"}`));
    expect(written(flat).length).toBeGreaterThan(room * large.length);
  });
});

describe('JoinedText', () => {
  it('makes a text of any other value', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 3 }), fc.constantFrom(0, 2), (json, space) => {
        const value: unknown = JSON.parse(json);
        const text = new JoinedText();
        text.addJson(Buffer.from(JSON.stringify(value, null, space)));
        expect(JSON.parse(written(text))).toBe(JSON.stringify(value));
      }),
    );
  });

  it('so too where it is long', () => {
    const list = Array.from({ length: 50_000 }, (_, i) => ({ '\\"': `a "b" ${i}` }));
    const text = new JoinedText();
    text.addJson(Buffer.from(JSON.stringify(list, null, 1)));
    expect(JSON.parse(written(text)) === JSON.stringify(list)).toBe(true);
  });
});
