import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonWalk, type WalkValue } from './json-walk.js';

type Seen = [path: string, value: WalkValue];

function values(json: string | readonly Buffer[]): Seen[] {
  const found: Seen[] = [];
  const walk = new JsonWalk<string[]>(
    {
      open: (_kind, key, inside) => [...inside, key],
      value: (key, value, inside) => found.push([[...inside.slice(1), key].join('/'), value]),
      close: () => {},
    },
    [],
  );
  for (const part of typeof json === 'string' ? [Buffer.from(json)] : json) walk.feed(part);
  return found;
}

/** The same by a parser, which sees of a name that stands twice only the last. */
function parsed(value: unknown, key: string, path: readonly string[], found: Seen[]): Seen[] {
  if (Array.isArray(value)) for (const item of value) parsed(item, key, [...path, key], found);
  else if (typeof value === 'object' && value !== null)
    for (const [name, member] of Object.entries(value)) parsed(member, name, [...path, key], found);
  else {
    const text =
      typeof value === 'string' ? Buffer.from(JSON.stringify(value)).toString('latin1') : undefined;
    const told = text === undefined ? (value === null ? null : undefined) : (JSON.parse(text) as string);
    found.push([[...path.slice(1), key].join('/'), told]);
  }
  return found;
}

/** How often it was in doubt, however the text is cut in two. */
function doubts(json: string | Buffer): number {
  const bytes = Buffer.from(json as Buffer);
  const places = Array.from({ length: Math.min(bytes.length, 100) + 1 }, (_, i) => i);
  const counts = [...places, 4096, 4097, 4100].map((place) => {
    let count = 0;
    const visitor = { open: () => 0, value: () => {}, close: () => {}, doubt: () => count++ };
    const walk = new JsonWalk<number>(visitor, 0);
    for (const part of [bytes.subarray(0, place), bytes.subarray(place)]) walk.feed(part);
    return count;
  });
  expect(new Set(counts).size).toBe(1);
  return counts[0] as number;
}

describe('JsonWalk', () => {
  it.each([
    ['an escape that JSON does not know', String.raw`{"a":[{"fi\x6ce_id":1}]}`],
    ['an escape of the line end in a name', '{"fi\\\nle_id":1}'],
    ['an escape in a text', String.raw`{"type":"item\u{5f}reference"}`],
    ['an escaped NUL in a name', String.raw`{"id\u0000":1}`],
    ['a NUL in a name', '{"id\0x":1}'],
    ['a name that is longer than is told', `{"${'x'.repeat(5000)}\\u0000":1}`],
    ['half a surrogate pair in a name', String.raw`{"i\ud800d":1}`],
    ['bytes in a name that are no UTF-8', Buffer.from('{"a":{"i\xffd":1}}', 'latin1')],
  ])('is in doubt at %s', (_, json) => expect(doubts(json)).toBeGreaterThan(0));

  it.each([
    ['escapes of JSON', String.raw`{"\u0061\"\\\/\b\f\n\r\t":"\ud800"}`],
    ['a bare control character', '{"a":"\\"\n\t\u0001"}'],
    ['a long text that is cut in an escape', `{"a":"${'\\n'.repeat(3000)}","b":"x${'\\n'.repeat(3000)}"}`],
    ['names of any script', '{"ü€😀":1,"\\ud83d\\ude00é":2}'],
    ['bytes in a text that are no UTF-8', Buffer.from('{"a":"\xff"}', 'latin1')],
    ['texts in lists', '["a","b",["c"],{"d":"e"}]'],
  ])('is in none at %s', (_, json) => expect(doubts(json)).toBe(0));

  it('names each value by its member, also inside of lists', () => {
    expect(values('{"a":"1","b":{"c":["2","3",{"d":"4"}]},"e":[["5"]],"f":1,"g":null,"h":true,"i":[null,-1.5e3]}')).toEqual([
      ['a', '1'], ['b/c/c', '2'], ['b/c/c', '3'], ['b/c/c/d', '4'], ['e/e/e', '5'], ['f', undefined], ['g', null], ['h', undefined],
      ['i/i', null], ['i/i', undefined],
    ]); // prettier-ignore
  });

  it('sees every member of a name that stands twice, however it is written', () => {
    expect(values('{"a":"1","\\u0061" : "2"}')).toEqual([['a', '1'], ['a', '2']]); // prettier-ignore
  });

  it('is not fooled by what stands in texts', () => {
    expect(values('{"a":"\\"b\\":\\"c\\"","d":"}{][\\\\"}')).toEqual([['a', '"b":"c"'], ['d', '}{][\\']]); // prettier-ignore
  });

  it('tells the beginning of a long text, and what stands behind it', () => {
    const long = `${'x'.repeat(4095)}\\"${'y'.repeat(5000)}`;
    const [first, second] = values(`{"a":"${long}","b":"1"}`);
    expect(first?.[1]).toHaveLength(4096);
    expect(second).toEqual(['b', '1']);
  });

  it('agrees with the parser on any JSON, cut anywhere', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 }),
        fc.nat(),
        fc.boolean(),
        (value, place, spaced) => {
          const json = Buffer.from(JSON.stringify(value, null, spaced ? 1 : 0));
          const cut = place % (json.length + 1);
          const read: unknown = JSON.parse(JSON.stringify(value));
          expect(values([json.subarray(0, cut), json.subarray(cut)]).map(([, told]) => told)).toEqual(
            parsed(read, '', [], []).map(([, told]) => told),
          );
        },
      ),
    );
  });

  it('neither throws nor hangs on any text, nor on any depth', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('"', '\\', '{', '}', '[', ']', ':', 'a', ' ', 'u', ',') }),
        (text) => void values(text),
      ),
    );
    const nested = (depth: number) => `${'['.repeat(depth)}"x"${']'.repeat(depth)}`;
    let told = 0;
    const deep = new JsonWalk({ open: () => null, value: () => told++, close: () => {} }, null);
    deep.feed(Buffer.from(nested(10_000)));
    deep.feed(Buffer.from(nested(1_000_000)));
    expect(told).toBe(1);
  });
});
