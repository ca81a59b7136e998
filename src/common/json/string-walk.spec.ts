import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { walkStrings } from './string-walk.js';

function texts(json: string): [path: string, value: string][] {
  const found: [string, string][] = [];
  walkStrings(json, {
    onText: (key, value, frame) => {
      const path: string[] = [];
      for (let at: typeof frame | null = frame; at?.parent; at = at.parent) path.unshift(at.key);
      found.push([[...path, key].join('/'), value]);
    },
    onObject: () => {},
  });
  return found;
}

/** The same by a parser, which sees of a name that stands twice only the last. */
function parsed(value: unknown, key: string, path: readonly string[], found: [string, string][]): void {
  if (typeof value === 'string') found.push([[...path, key].join('/'), value]);
  else if (Array.isArray(value)) for (const item of value) parsed(item, key, [...path, key], found);
  else if (typeof value === 'object' && value !== null)
    for (const [name, member] of Object.entries(value)) parsed(member, name, [...path, key], found);
}

describe('walkStrings', () => {
  it('names each text by its member, also inside of lists', () => {
    expect(texts('{"a":"1","b":{"c":["2","3",{"d":"4"}]},"e":[["5"]],"f":1,"g":null,"h":true}')).toEqual([
      ['a', '1'], ['b/c/c', '2'], ['b/c/c', '3'], ['b/c/c/d', '4'], ['e/e/e', '5'],
    ]); // prettier-ignore
  });

  it('sees every member of a name that stands twice, however it is written', () => {
    expect(texts('{"a":"1","\\u0061" : "2"}')).toEqual([['a', '1'], ['a', '2']]); // prettier-ignore
  });

  it('is not fooled by what stands in texts', () => {
    expect(texts('{"a":"\\"b\\":\\"c\\"","d":"}{][\\\\"}')).toEqual([['a', '"b":"c"'], ['d', '}{][\\']]); // prettier-ignore
  });

  it('tells an object with all its members', () => {
    const seen: unknown[] = [];
    walkStrings('{"x":{"a":"1","b":2,"a":"3"}}', {
      onText: () => {},
      onObject: ({ key, names, texts: own }) => seen.push([key, [...names], own]),
    });
    expect(seen).toEqual([['x', ['a', 'b'], [['a', '1'], ['a', '3']]], ['', ['x'], []]]); // prettier-ignore
  });

  it('agrees with the parser on any JSON', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 }), (value) => {
        const expected: [string, string][] = [];
        const json = JSON.stringify(value);
        const read = JSON.parse(json) as Record<string, unknown>;
        for (const [name, member] of Object.entries(read)) parsed(member, name, [], expected);
        expect(texts(json)).toEqual(expected);
      }),
    );
  });

  it('neither throws nor hangs on any text, nor on any depth', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('"', '\\', '{', '}', '[', ']', ':', 'a', ' ', 'u') }),
        (text) => void texts(text),
      ),
    );
    expect(texts(`${'['.repeat(200_000)}"x"${']'.repeat(200_000)}`)).toHaveLength(1);
  });
});
