import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isJson, jsonObject, spaces, textOf } from '../../../test/support/json-texts.js';
import { JsonDocument } from './json-document.js';
import { JsonIndexer } from './json-indexer.js';
import { JsonSyntaxError } from './json-syntax-error.js';

function index(chunks: readonly Buffer[]): JsonDocument {
  const indexer = new JsonIndexer();
  for (const chunk of chunks) indexer.push(chunk);
  return indexer.end();
}

/** All that can be seen of a document. */
function seen(document: JsonDocument): unknown {
  const keys = document.keys();
  return {
    keys,
    raws: keys.map((key) => document.raw(key)?.toString('latin1')),
    text: document.toBuffer().toString(),
  };
}

function outcome(run: () => JsonDocument): unknown {
  try {
    return seen(run());
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    return { reason: error.reason, offset: error.offset };
  }
}

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...places.map((place) => place % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  return ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end));
}

const samples = [
  '{}',
  '\ufeff { } \n',
  ' {"mod\\u0065l":"a\\\\", "é🙂" : [1,{"x":"]}\\""},[[]]],"n":-1.5e+10,"t":true , "f":false,"z":null} ',
  `{"a":"${'\\"'.repeat(40)}","b":"${'\\\\'.repeat(40)}","c":"${'x'.repeat(70)}\\\\"}`,
  `{"a":{"b":"${'é'.repeat(40)}\\"","c":["${'y'.repeat(40)}\\\\",1234567890123]},"d":0}`,
];

const refused = [
  ['', 'nothing'],
  [' \n', 'white space'],
  ['\ufeff', 'a BOM alone'],
  ['[]', 'an array'],
  ['"a"', 'a string'],
  ['null', 'null'],
  ['{', 'open'],
  ['{"a"}', 'no value'],
  ['{"a":}', 'empty value'],
  ['{"a":1,}', 'trailing comma'],
  ['{,}', 'comma alone'],
  ['{"a" 1}', 'no colon'],
  ['{"a":1 "b":2}', 'no comma'],
  ['{a:1}', 'bare key'],
  ["{'a':1}", 'single quotes'],
  ['{"a":1}}', 'a bracket too many'],
  ['{"a":1} x', 'text after the end'],
  ['{"a":1}\ufeff', 'a BOM at the end'],
  ['{"a":01}', 'leading zero'],
  ['{"a":+1}', 'plus'],
  ['{"a":1.}', 'no fraction'],
  ['{"a":.5}', 'no integer'],
  ['{"a":1e}', 'no exponent'],
  ['{"a":-}', 'minus alone'],
  ['{"a":NaN}', 'NaN'],
  ['{"a":tru}', 'half a literal'],
  ['{"a":truee}', 'more than a literal'],
  ['{"a":[1}', 'brackets that do not match'],
  ['{"a":{"b":[}]}}', 'crossed brackets'],
  ['{"a":"x}', 'open string'],
  ['{"a":["x]}', 'open nested string'],
  ['{"a\u0001":1}', 'control character in a key'],
  ['{"a\\q":1}', 'bad escape in a key'],
  ['{"a":1/**/}', 'a comment'],
] as const;

describe('JsonIndexer', () => {
  it.each(samples)('gives the same wherever %j is cut', (text) => {
    const bytes = Buffer.from(text);
    const whole = seen(index([bytes]));
    for (let i = 0; i <= bytes.length; i++) expect(seen(index(cut(bytes, [i])))).toEqual(whole);
    for (let i = 0; i < bytes.length; i++) expect(seen(index(cut(bytes, [i, i + 1])))).toEqual(whole);
    expect(seen(index(cut(bytes, [...bytes.keys()])))).toEqual(whole);
  });

  it('gives the same for any text and any cuts', () => {
    fc.assert(
      fc.property(jsonObject, spaces, fc.array(fc.nat(5000), { maxLength: 8 }), (node, between, places) => {
        const bytes = Buffer.from(textOf(node, between));
        const whole = seen(JsonDocument.parse(bytes));
        expect(seen(index(cut(bytes, places)))).toEqual(whole);
        expect(seen(index(cut(bytes, [...bytes.keys()])))).toEqual(whole);
      }),
    );
  });

  it.each(refused)('refuses %j (%s) wherever it is cut', (text) => {
    const bytes = Buffer.from(text);
    const whole = outcome(() => index([bytes]));
    expect(whole).toHaveProperty('reason');
    for (let i = 0; i <= bytes.length; i++) expect(outcome(() => index(cut(bytes, [i])))).toEqual(whole);
  });

  it('refuses half a BOM', () => {
    expect(() => JsonDocument.parse(Buffer.from([0xef, 0xbb, 0x7b, 0x7d]))).toThrow(JsonSyntaxError);
    expect(() => JsonDocument.parse(Buffer.from([0xef, 0xbb, 0x20, 0xbf, 0x7b, 0x7d]))).toThrow(
      JsonSyntaxError,
    );
  });

  it('names the place and never the text', () => {
    const error = new JsonIndexer();
    expect(() => error.push(Buffer.from('{"secret":1,"b" "hidden"}'))).toThrow(
      new JsonSyntaxError('colon expected', 16),
    );
  });

  it('does not look at literals below the top level', () => {
    expect(
      index([Buffer.from('{"a":[tru,01,{x}]}')])
        .raw('a')
        ?.toString(),
    ).toBe('[tru,01,{x}]');
  });

  it('refuses each truncation of a valid text', () => {
    fc.assert(
      fc.property(jsonObject, spaces, (node, between) => {
        const bytes = Buffer.from(textOf(node, between));
        for (let end = 0; end < bytes.length; end++) {
          if (JsonDocument.tryParse(bytes.subarray(0, end)) !== undefined)
            expect.fail(`accepted ${end} bytes`);
        }
      }),
      { numRuns: 50 },
    );
  });

  it('agrees with JSON.parse on the top level', () => {
    const tokens = [
      '{',
      '}',
      '"a"',
      '"b"',
      ':',
      ',',
      '1',
      '0',
      '-',
      '.',
      'e',
      '+',
      'true',
      'null',
      ' ',
      '"a":1',
      '"b":',
    ];
    const soup = fc.array(fc.constantFrom(...tokens.slice(1)), { maxLength: 9 });
    fc.assert(
      fc.property(soup, fc.boolean(), (pieces, closed) => {
        const text = `{${pieces.join('')}${closed ? '}' : ''}`;
        expect(JsonDocument.tryParse(Buffer.from(text)) !== undefined).toBe(isJson(text));
      }),
      { numRuns: 5000 },
    );
  });

  it('survives any change of a byte, and refuses nothing that is JSON', () => {
    const change = fc.tuple(
      fc.nat(5000),
      fc.nat(2),
      fc.constantFrom(...Buffer.from('{}[]":,\\ 0-tfn\u0000é')),
    );
    fc.assert(
      fc.property(
        jsonObject,
        spaces,
        fc.array(change, { minLength: 1, maxLength: 4 }),
        (node, between, changes) => {
          const bytes = [...Buffer.from(textOf(node, between))];
          for (const [place, removed, byte] of changes) bytes.splice(place % bytes.length, removed, byte);
          const buffer = Buffer.from(bytes);
          const document = JsonDocument.tryParse(buffer);
          const text = buffer.toString();
          if (isJson(text) && text.trimStart().startsWith('{')) expect(document).toBeDefined();
          expect(outcome(() => index(cut(buffer, [...buffer.keys()])))).toEqual(
            outcome(() => JsonDocument.parse(buffer)),
          );
          for (const key of document?.keys() ?? []) {
            document?.get(key);
            document?.object(key)?.set('k', 1);
            document?.array(key)?.push(document.string(key));
          }
          expect(document?.byteLength).toBe(document?.toBuffer().length);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('bounds the nesting without recursion', () => {
    const nested = (depth: number): Buffer => Buffer.from(`{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`);
    expect(index([nested(10_000)]).array('a')).toBeDefined();
    expect(() => index([nested(10_001)])).toThrow('nested too deeply');
    expect(() => index([Buffer.from(`{"a":${'[{"a":'.repeat(1_000_000)}`)])).toThrow('nested too deeply');
  });

  it('bounds the number of members', () => {
    expect(() => index([Buffer.from(`{${'"":0,'.repeat(1_000_001)}"":0}`)])).toThrow('too many members');
  });

  it('keeps the chunks it was given', () => {
    const chunks = cut(Buffer.from(`{"a":"${'x'.repeat(200_000)}","b":1}`), [65536, 131072]);
    const parts = index(chunks).parts();
    expect(parts.map((part) => part.buffer === chunks[0]?.buffer)).toEqual([true, true, true]);
    expect(parts).toEqual(chunks);
  });
});
