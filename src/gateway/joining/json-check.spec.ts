import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { isGrammatical, isJson } from './json-check.js';

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe('isGrammatical', () => {
  const pieces = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '"a"',
    '"a":',
    '\\',
    '\\u',
    '\\u00Af',
    '\\n',
    '\\x',
    '0',
    '-',
    '1.5e3',
    '01',
    'true',
    'null',
    'nul',
    ' ',
    '\n',
    '\t',
    '\f',
    '\u0001',
    'ü',
    '{}',
    '[]',
    '"":1',
    '\u2028',
  );

  it('takes what JSON.parse takes and nothing else', () => {
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 8 }), (list) => {
        const text = list.join('');
        expect([text, isGrammatical(Buffer.from(text))]).toEqual([text, parses(text)]);
      }),
      { numRuns: 5000 },
    );
  });

  it('so too where one byte of a JSON text is another or none', () => {
    fc.assert(
      fc.property(
        fc.json(),
        fc.nat(),
        fc.constantFrom('', ',', '"', '}', ']', ':', '\\', '0', ' '),
        (text, at, other) => {
          const place = at % (text.length + 1);
          const wrong = text.slice(0, place) + other + text.slice(place + 1);
          expect(isGrammatical(Buffer.from(text))).toBe(true);
          expect([wrong, isGrammatical(Buffer.from(wrong))]).toEqual([wrong, parses(wrong)]);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('goes as deep as the value without a stack of its own', () => {
    const deep = `${'[{"a":'.repeat(50_000)}1${'}]'.repeat(50_000)}`;
    expect(isGrammatical(Buffer.from(deep))).toBe(true);
    expect(isGrammatical(Buffer.from(deep.slice(0, -1)))).toBe(false);
  });
});

describe('isJson', () => {
  it('makes no objects of a large value', () => {
    const parse = vi.spyOn(JSON, 'parse');
    try {
      const list = `[${'{},'.repeat(100_000)}{}]`;
      expect(isJson(Buffer.from(list))).toBe(true);
      expect(isJson(Buffer.from(list.replace('{}]', '{]')))).toBe(false);
      expect(parse).not.toHaveBeenCalled();
      expect(isJson(Buffer.from(' {"a":1} '))).toBe(true);
      expect(isJson(Buffer.from('{"a":1'))).toBe(false);
    } finally {
      vi.restoreAllMocks();
    }
  });
});
