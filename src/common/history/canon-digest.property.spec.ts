import { hash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { canonOf, canonOfValue } from './canon.js';
import { messageDigest, valueDigest } from './canon-digest.js';

const bySha256 = (text: string): string => hash('sha256', text, 'binary');
/** Long enough not to be read by V8. */
const PAD = ' '.repeat(300);

function same(json: string | Buffer): void {
  const text = Buffer.concat([Buffer.from(json as string), Buffer.from(PAD)]);
  expect(valueDigest(text) === bySha256(canonOfValue(text))).toBe(true);
  expect(messageDigest('é\u0001', text) === bySha256('é\u0001' + canonOf(text))).toBe(true);
}

const space = fc.constantFrom('', '', '', ' ', '\n', '\t\r ');
const hex = fc
  .tuple(
    fc.constantFrom(
      0,
      8,
      9,
      0x1f,
      0x22,
      0x2f,
      0x5c,
      0x61,
      0x7f,
      0xe9,
      0x7ff,
      0x20ac,
      0xd83d,
      0xde00,
      0xdfff,
      0xe000,
      0xfffd,
      0xffff,
    ),
    fc.boolean(),
  )
  .map(([unit, upper]) => {
    const digits = unit.toString(16).padStart(4, '0');
    return `\\u${upper ? digits.toUpperCase() : digits}`;
  });
const piece = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      'a',
      'b',
      '!',
      '~',
      ' ',
      'é',
      '€',
      '\u{1f600}',
      '\ue000',
      '\uffff',
      '\u2028',
      '\u007f',
    ),
  },
  { weight: 3, arbitrary: hex },
  { weight: 3, arbitrary: fc.constantFrom('\\n', '\\"', '\\\\', '\\/', '\\b', '\\t', '\\f', '\\r') },
);
const broken = fc.constantFrom('\n', '\\x', '\\u12', '\\', '"', '\u0001');
const string = fc
  .tuple(fc.array(piece, { maxLength: 6 }), fc.integer({ min: 0, max: 60 }), broken)
  .map(
    ([pieces, odd, bad]) => `"${pieces.join('')}${odd === 60 ? bad : ''}${'x'.repeat(odd === 1 ? 100 : 0)}"`,
  );
/** Trap: where V8 has seen an object whose first name is a backslash, it reads other escaped names as that one. */
const keyString = string.filter((text) => !/\\\\|\\u005c/i.test(text));
const key = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .constantFrom(
        'role',
        'content',
        'name',
        'tool_calls',
        'cache_control',
        'cache\\u005fcontrol',
        'a',
        'aa',
        'a!',
        '1',
        '10',
        '2',
        '__proto__',
        'toString',
        '',
      )
      .map((name) => `"${name}"`),
  },
  keyString,
);
const digits = fc.stringMatching(/^[0-9]{1,20}$/);
const number = fc.oneof(
  fc.double().map(String),
  fc.constantFrom(
    '0',
    '-0',
    '1.0',
    '1e5',
    '1E+400',
    '-1e-400',
    '0.1',
    '0.01',
    '0.0000001',
    '1e21',
    '100',
    '0.0',
    '-0.0',
    '5e-324',
    '12345678901234567890',
    '123456789012345',
    '0.1234567890123456',
    '01',
    '.5',
    '1.',
    '1e',
    '-',
    '+1',
    '0x1',
    'NaN',
  ),
  fc.tuple(digits, digits).map(([whole, fraction]) => `${whole}.${fraction}`),
  fc
    .tuple(fc.constantFrom('', '-'), digits, fc.integer({ min: -30, max: 30 }))
    .map(([sign, n, e]) => `${sign}${n}e${e}`),
  digits,
);
const word = fc.constantFrom('true', 'false', 'null', 'true', 'false', 'null', 'nul', 'truee', 'True');
const { value, object } = fc.letrec<{ value: string; object: string; array: string }>((tie) => ({
  value: fc.oneof({ maxDepth: 5 }, fc.oneof(string, number, word), tie('object'), tie('array')),
  object: fc
    .tuple(
      space,
      fc.array(fc.tuple(key, space, tie('value')), { maxLength: 5 }),
      fc.integer({ min: 0, max: 80 }),
    )
    .map(([s, members, odd]) => {
      const inside = members.map(([name, t, json]) => `${t}${name}${s}:${t}${json}${s}`).join(',');
      return `{${s}${inside}${odd === 80 ? ',' : ''}}`;
    }),
  array: fc
    .tuple(space, fc.array(tie('value'), { maxLength: 4 }), fc.integer({ min: 0, max: 80 }))
    .map(([s, items, odd]) => `[${s}${items.join(`${s},${s}`)}${odd === 80 ? ',' : ''}${s}]`),
}));

describe('messageDigest and valueDigest', () => {
  it('are the hashes of the canonical forms, whatever the spelling', () => {
    fc.assert(
      fc.property(fc.oneof(object, value), (json) => same(json)),
      { numRuns: 4000 },
    );
  });

  it('of objects of many members, in any order', () => {
    const names = fc.array(fc.oneof(key, keyString), { minLength: 10, maxLength: 60 });
    fc.assert(
      fc.property(names, (keys) => same(`{"content":{${keys.map((name, i) => `${name}:${i}`).join(',')}}}`)),
      { numRuns: 500 },
    );
  });

  it('of names with a backslash in them', () => {
    const spelled = `{"content":{"\\n":1,"b":2,"\\\\":3,"\\u005d":4,"[":5}}${PAD}`;
    const canon = '{"content":{"\\n":1,"[":5,"\\\\":3,"]":4,"b":2}}';
    expect(valueDigest(Buffer.from(spelled)) === bySha256(canon)).toBe(true);
  });

  it('of numbers of every form', () => {
    fc.assert(
      fc.property(fc.array(number, { minLength: 1, maxLength: 1 }), ([text]) => same(`{"content":${text}}`)),
      { numRuns: 4000 },
    );
  });

  it('of bytes that are no UTF-8, cut and mended texts', () => {
    const bytes = fc.tuple(fc.uint8Array({ maxLength: 8 }), fc.nat(40), object);
    fc.assert(
      fc.property(bytes, ([odd, at, json]) => {
        const text = Buffer.from(json);
        same(Buffer.concat([text.subarray(0, at), odd, text.subarray(at)]));
        same(text.subarray(0, at));
        same(Buffer.concat([Buffer.from('{"content":"'), odd, Buffer.from('"}')]));
      }),
      { numRuns: 2000 },
    );
  });

  it('of what is nested deeply', () => {
    for (const depth of [10, 300]) same(`{"content":${'{"b":1,"a":'.repeat(depth)}1.0${'}'.repeat(depth)}}`);
    for (const depth of [10, 1000, 1500]) {
      same(`{"content":${'['.repeat(depth)}1.0${']'.repeat(depth)}}`);
      same(`{"content":${'{"a":'.repeat(depth)}1.0${',"b":1}'.repeat(depth)}}`);
    }
  });

  it('of a message that is too much to put in order are those of its bytes', () => {
    const bytesOf = (text: string): string => bySha256(`p${text}`);
    const deep = `{"content":${'['.repeat(6001)}${']'.repeat(6001)}, "x":1}`;
    const wide = `{"content":{${Array.from({ length: 70_000 }, (_, i) => `"${70_000 - i}":1`).join(',')}}, "x":1}`;
    const heavy = `{"content":${'{"b":1,"a":'.repeat(100)}"${'x'.repeat(100_000)}"${'}'.repeat(100)}, "x":1}`;
    for (const text of [deep, wide, heavy])
      expect(messageDigest('p', Buffer.from(text)) === bytesOf(text)).toBe(true);
    // In order as they come they are no work.
    const sorted = Array.from({ length: 70_000 }, (_, i) => `"${100_000 + i}": 1`).join(',');
    same(`{"content":{${sorted}}}`);
  });

  it('make no values of a large message', () => {
    const parse = vi.spyOn(JSON, 'parse');
    const stringify = vi.spyOn(JSON, 'stringify');
    messageDigest('p', Buffer.from(`{"content":[${'{"b":"\\u00e9","a":1.50},'.repeat(10_000)}{}]}`));
    expect([parse.mock.calls.length, stringify.mock.calls.length]).toEqual([0, 0]);
    vi.restoreAllMocks();
  });
});
