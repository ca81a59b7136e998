import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isJson, jsonObject, spaces, textOf } from '../../../test/support/json-texts.js';
import { JsonDocument } from './json-document.js';
import { JsonGrammar } from './json-grammar.js';

/** Where the text is none of JSON, the same however it is cut; -1 where it is JSON, as far as it goes. */
function faultOf(text: string, places: readonly number[] = Array.from(text, (_, i) => i)): number {
  const bytes = Buffer.from(text);
  const faults = places.map((place) => {
    const grammar = new JsonGrammar();
    const first = grammar.feed(bytes, 0, Math.min(place, bytes.length));
    return first >= 0 ? first : grammar.feed(bytes, Math.min(place, bytes.length), bytes.length);
  });
  expect(new Set(faults.map((at) => at >= 0)).size).toBe(1);
  return Math.max(...faults);
}

describe('JsonGrammar', () => {
  it.each([
    ['a comment', '{"a":[/*"*/],"b":[/*"*/]}'],
    ['a comment to the end of the line', '{"a":[1,//"\n2],"b":[//"\n3]}'],
    ['a hash', '{"a":{"b":1 #"\n},"c":{"d":2 #"\n}}'],
    ['single quotes', `{"a":{'b':1}}`],
    ['back quotes', '{"a":[`b`]}'],
    ['a bare name', '{"a":{b:1}}'],
    ['a bare word', '{"a":[b]}'],
    ['a quote behind a letter', '{"x":[a"],model:"hid",y:[a"]}'],
    ['a quote behind a literal', '{"x":[true"],model:"hid",y:[true"]}'],
    ['a quote behind a number', '{"x":[1"],model:"hid",y:[1"]}'],
    ['a quote behind a number and a blank', '{"x":[1 "\n], model: hid\n y:[1 "\n]}'],
    ['a bracket behind a word', '{"x":[1 [\n],"model":"hid","y":[a ]\n]}'],
    ['a bracket behind a literal', '{"a":[null[]]}'],
    ['no comma between members', '{"a":{"b":1\n"c":2}}'],
    ['no comma between items', '{"a":["b" "c"]}'],
    ['no colon', '{"a":{"b" "c"}}'],
    ['two colons', '{"a":{"b"::1}}'],
    ['a colon in a list', '{"a":["b":1]}'],
    ['two commas', '{"a":[1,,2]}'],
    ['a comma first', '{"a":[,1]}'],
    ['a comma last', '{"a":[1,]}'],
    ['a comma last in an object', '{"a":{"b":1,}}'],
    ['a name alone', '{"a":{"b"}}'],
    ['no value', '{"a":{"b":}}'],
    ['a number as a name', '{"a":{1:2}}'],
    ['a semicolon', '{"a":{"b":1;"c":2}}'],
    ['an equals sign', '{"a":{"b"=1}}'],
    ['another closing bracket', '{"a":[1}}'],
    ['NaN', '{"a":[NaN]}'],
    ['Infinity', '{"a":[-Infinity]}'],
    ['a hexadecimal number', '{"a":[0x1f]}'],
    ['a leading zero', '{"a":[01]}'],
    ['a plus', '{"a":[+1]}'],
    ['a point without digits', '{"a":[1.]}'],
    ['a no-break space', '{"a":[\u00a01]}'],
    ['NUL', '{"a":[\0]}'],
    ['more behind it', '{"a":1}{'],
  ])('finds %s', (_, text) => expect(faultOf(text)).toBeGreaterThanOrEqual(0));

  it('says where', () => {
    expect(faultOf('{"a":{"b" "c"}}')).toBe(10);
    expect(faultOf('{"a":[1,,2]}')).toBe(8);
    expect(faultOf('{"a":[1, tru ]}', [0])).toBe(9);
  });

  it('looks for nothing in texts but their end', () => {
    expect(faultOf(String.raw`{"a":"\x\"]}',\\","b":["/*","\\\"","\u{1}"]}`)).toBe(-1);
    expect(faultOf('{"a":"\n\t\u0001"}')).toBe(-1);
  });

  it('takes all that is JSON, in pieces cut anywhere', () => {
    fc.assert(
      fc.property(
        jsonObject,
        spaces,
        fc.array(fc.nat(3000), { minLength: 1, maxLength: 5 }),
        (node, between, places) => {
          expect(faultOf(textOf(node, between), places)).toBe(-1);
        },
      ),
    );
  });

  it('agrees with the parser on any change of a byte outside of texts', () => {
    const tokens = ['{', '}', '[', ']', ',', ':', '"a"', '1', '-2.5e3', 'true', 'null', ' ', '\n', 'x', "'"];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...tokens), { maxLength: 14 }), (parts) => {
        const text = `{"a":${parts.join('')}}`;
        const document = JsonDocument.tryParse(Buffer.from(text));
        // What the top level says is asked before.
        if (document === undefined) return;
        expect(document.faultAt() < 0).toBe(isJson(text));
      }),
      { numRuns: 3000 },
    );
  });

  it('tells the place in a body that came in pieces, behind a byte order mark', () => {
    const document = JsonDocument.parse([Buffer.from('\ufeff{"a":'), Buffer.from('[1 2'), Buffer.from(']}')]);
    expect(document.faultAt()).toBe(11);
  });

  it('refuses a number that nobody writes', () => {
    const places = [0, 6, 100, 4100];
    expect(faultOf(`{"a":[${'1'.repeat(4097)}]}`, places)).toBeGreaterThan(0);
    expect(faultOf(`{"a":[${'1'.repeat(4096)}]}`, places)).toBe(-1);
  });
});
