import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readPlainJson } from './json-shortcut.js';
import { YamlReader } from './yaml-reader.js';
import { parseYaml } from './yaml-syntax.js';

describe('readPlainJson', () => {
  it.each([
    'a: 1',
    '[1]',
    '{ a: 1 }',
    '{"a":1,"a":2}',
    '{"b":{"a":1,"\\u0061":2}}',
    '{"a":9007199254740993}',
    '{"a":1} # comment',
    `{"a":${'['.repeat(150)}${']'.repeat(150)}}`,
  ])('leaves %j to the YAML reader', (text) => {
    expect(readPlainJson(text)).toBeNull();
  });

  it('is not misled by what stands inside texts', () => {
    expect(readPlainJson('{"a":"{\\"b\\":1, \\\\","c":":1234567890123456789"}')).toEqual({
      value: { a: '{"b":1, \\', c: ':1234567890123456789' },
    });
  });

  it('reads any JSON object as the YAML reader does', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()),
        fc.constantFrom(0, 1, 2),
        (object, indent) => {
          const text = JSON.stringify(object, null, indent);
          const quick = readPlainJson(text);
          fc.pre(quick !== null);
          const { document, problems } = parseYaml(text);
          const found: string[] = [];
          const value = new YamlReader((_, message) => found.push(message)).read(document.contents);
          expect([problems, found]).toEqual([[], []]);
          expect(JSON.stringify(quick?.value)).toBe(JSON.stringify(value));
        },
      ),
    );
  });
});
