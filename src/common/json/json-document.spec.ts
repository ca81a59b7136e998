import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canonical,
  compact,
  jsonNode,
  jsonObject,
  KEYS,
  spaces,
  textOf,
  type JsonNode,
  type ObjectNode,
} from '../../../test/support/json-texts.js';
import { JsonDocument } from './json-document.js';

const parse = (text: string): JsonDocument => JsonDocument.parse(Buffer.from(text));
const text = (document: JsonDocument): string => document.toBuffer().toString();

/** One edit: down along `path` as far as there are objects (an array is entered at `item`), then set or delete. */
interface Operation {
  readonly path: readonly string[];
  readonly item: number;
  readonly value: JsonNode | null;
}

const operation: fc.Arbitrary<Operation> = fc.record({
  path: fc.array(fc.constantFrom(...KEYS), { minLength: 1, maxLength: 4 }),
  item: fc.nat(3),
  value: fc.option(jsonNode, { freq: 3 }),
});

function edit(root: JsonDocument, { path, item, value }: Operation): void {
  let at = root;
  let last = path[0] as string;
  for (const key of path.slice(1)) {
    const next = at.object(last) ?? at.array(last)?.object(item);
    if (next === undefined) break;
    at = next;
    last = key;
  }
  if (value === null) at.delete(last);
  else at.setRaw(last, Buffer.from(textOf(value)));
}

/** The same on the tree, and the naive way. */
function editTree(root: ObjectNode, { path, item, value }: Operation): void {
  const trail: (() => void)[] = [];
  let at = root;
  let last = path[0] as string;
  const keepLast = (object: ObjectNode, key: string): void => {
    const kept = object.members.findLast((member) => member.key === key);
    object.members = object.members.filter((member) => member.key !== key || member === kept);
  };
  for (const key of path.slice(1)) {
    const found = at.members.findLast((member) => member.key === last)?.value;
    if (found === undefined || typeof found === 'string') break;
    const next = 'items' in found ? found.items[item] : found;
    if (next === undefined || typeof next === 'string' || 'items' in next) break;
    const [object, name] = [at, last];
    trail.push(() => keepLast(object, name));
    at = next;
    last = key;
  }
  const member = at.members.findLast(({ key }) => key === last);
  if (value === null && member === undefined) return;
  for (const rewritten of trail) rewritten();
  if (value === null) at.members = at.members.filter(({ key }) => key !== last);
  else if (member === undefined)
    at.members.push({ key: last, keyText: JSON.stringify(last), value: clone(value) });
  else {
    keepLast(at, last);
    member.value = clone(value);
  }
}

const clone = (node: JsonNode): JsonNode => structuredClone(node);

function expectSame(document: JsonDocument, tree: ObjectNode): void {
  const result = text(document);
  expect(compact(result)).toBe(textOf(tree));
  expect(canonical(JSON.parse(result))).toEqual(canonical(JSON.parse(textOf(tree))));
  expect(document.byteLength).toBe(Buffer.byteLength(result));
  expect(Buffer.concat(document.parts()).toString()).toBe(result);
  const names = tree.members.map(({ key }) => key);
  expect(document.keys()).toEqual(names.filter((key, i) => names.lastIndexOf(key) === i));
}

describe('JsonDocument under edits', () => {
  it('changes what is named and not a byte else', () => {
    fc.assert(
      fc.property(jsonObject, spaces, fc.array(operation, { maxLength: 6 }), (tree, between, operations) => {
        const document = parse(textOf(tree, between));
        for (const step of operations) {
          edit(document, step);
          editTree(tree, step);
          expectSame(document, tree);
        }
        expectSame(parse(text(document)), tree);
      }),
      { numRuns: 1000 },
    );
  });

  it('keeps the white space inside values it does not name', () => {
    fc.assert(
      fc.property(jsonObject, spaces, operation, (tree, between, step) => {
        const before = parse(` ${textOf(tree, between)}\n`);
        const after = before.fork();
        edit(after, step);
        for (const key of before.keys()) {
          if (key !== step.path[0]) expect(after.raw(key)).toEqual(before.raw(key));
        }
        expect(text(after)).toMatch(/^ \{[^]*\}\n$/);
      }),
    );
  });

  it('keeps forks apart, whatever is edited on either side and in between', () => {
    const steps = fc.array(fc.tuple(fc.nat(3), fc.boolean(), operation), { maxLength: 8 });
    fc.assert(
      fc.property(jsonObject, spaces, steps, (tree, between, list) => {
        const documents = [parse(textOf(tree, between))];
        const trees = [tree];
        for (const [which, fork, step] of list) {
          const i = which % documents.length;
          if (fork) {
            documents.push((documents[i] as JsonDocument).fork());
            trees.push(structuredClone(trees[i] as ObjectNode));
          }
          edit(documents[i] as JsonDocument, step);
          editTree(trees[i] as ObjectNode, step);
        }
        for (const [i, document] of documents.entries()) expectSame(document, trees[i] as ObjectNode);
      }),
      { numRuns: 500 },
    );
  });

  it('is the same for bytes in one piece and in many', () => {
    fc.assert(
      fc.property(jsonObject, spaces, fc.array(operation, { maxLength: 4 }), (tree, between, operations) => {
        const bytes = Buffer.from(textOf(tree, between));
        const whole = JsonDocument.parse(bytes);
        const split = JsonDocument.parse(Array.from(bytes, (_byte, i) => bytes.subarray(i, i + 1)));
        for (const step of operations) {
          edit(whole, step);
          edit(split, step);
        }
        expect(text(split)).toBe(text(whole));
      }),
    );
  });
});

describe('JsonDocument', () => {
  it.each([
    ['{"a":1}', 'a', '{}'],
    ['{ "a" : 1 , "b" : 2 , "c" : 3 }', 'a', '{ "b" : 2 , "c" : 3 }'],
    ['{ "a" : 1 , "b" : 2 , "c" : 3 }', 'b', '{ "a" : 1 , "c" : 3 }'],
    ['{ "a" : 1 , "b" : 2 , "c" : 3 }', 'c', '{ "a" : 1 , "b" : 2 }'],
    ['{"a":1,"b":2,"a":3}', 'a', '{"b":2}'],
    ['{"b":2}', 'a', '{"b":2}'],
  ])('%s without %s is %s', (before, key, after) => {
    const document = parse(before);
    document.delete(key);
    expect(text(document)).toBe(after);
    expect(document.has(key)).toBe(false);
  });

  it.each([
    ['{}', '{"k":1}'],
    [' { } ', ' {"k":1 } '],
    ['{"a":1 }', '{"a":1,"k":1 }'],
    ['{"k":2,"a":1}', '{"k":1,"a":1}'],
    ['{"k":2,"a":1,"k":3}', '{"a":1,"k":1}'],
    ['{"k":2,"a":1,"\\u006b" :3}', '{"a":1,"\\u006b" :1}'],
  ])('%s with k is %s', (before, after) => {
    const document = parse(before);
    document.set('k', 1);
    expect(text(document)).toBe(after);
  });

  it('drops a BOM and nothing else', () => {
    expect(text(parse('\ufeff {"a":1.0}\n'))).toBe(' {"a":1.0}\n');
  });

  it('rewrites a key that stands half a million times in one pass, with the edits of other keys beside it', () => {
    const twins = '"a":1,'.repeat(250_000);
    const document = JsonDocument.parse(Buffer.from(`{"x":0,${twins}"b":{"c":2},${twins}"y":0}`));
    document.set('y', 9);
    document.object('b')?.set('c', 3);
    document.set('a', 5);
    expect(document.toBuffer().toString()).toBe('{"x":0,"b":{"c":3},"a":5,"y":9}');
    document.set('a', 6);
    document.delete('b');
    expect(document.fork().toBuffer().toString()).toBe('{"x":0,"a":6,"y":9}');
  });

  it('leaves duplicates alone until their key is rewritten', () => {
    const before = '{"a":{"x":1},"b":1,"a":{"x":2,"x":3}}';
    const document = parse(before);
    document.set('b', 2);
    expect(document.object('a')?.get('x')).toBe(3);
    expect(text(document)).toBe('{"a":{"x":1},"b":2,"a":{"x":2,"x":3}}');
    document.object('a')?.set('y', 4);
    expect(text(document)).toBe('{"b":2,"a":{"x":2,"x":3,"y":4}}');
  });

  it('reads values', () => {
    const document = parse(
      '{"s":"x","e":"\\u00e9\\n","l":"é","bad":"\\q","tab":"\t","n":1.50,"big":12345678901234567890,"t":true,"f":false,"z":null,"a":[1],"broken":[x]}',
    );
    expect(document.string('s')).toBe('x');
    expect(document.string('e')).toBe('é\n');
    expect(document.string('l')).toBe('é');
    for (const key of ['bad', 'tab', 'n', 't', 'z', 'a', 'none'])
      expect(document.string(key)).toBeUndefined();
    expect(document.get('n')).toBe(1.5);
    expect(document.raw('n')?.toString()).toBe('1.50');
    expect(document.raw('big')?.toString()).toBe('12345678901234567890');
    expect([document.get('t'), document.get('f'), document.get('z')]).toEqual([true, false, null]);
    expect(document.get('a')).toEqual([1]);
    for (const key of ['broken', 'bad', 'none']) expect(document.get(key)).toBeUndefined();
    expect(['t', 'f', 's', 'none'].map((key) => document.isTrue(key))).toEqual([true, false, false, false]);
    expect(document.object('a')).toBeUndefined();
    expect(document.array('broken')).toBeUndefined();
  });

  it('writes any value', () => {
    const document = parse('{}');
    document.set('big', 12345678901234567890n);
    document.set('deep', { list: [1n, 'é', '\ud800'] });
    document.set('t', true);
    document.set('gone', 1);
    document.set('gone', undefined);
    expect(text(document)).toBe('{"big":12345678901234567890,"deep":{"list":[1,"é","\\ud800"]},"t":true}');
    expect(document.isTrue('t')).toBe(true);
    expect(document.object('deep')?.array('list')?.string(1)).toBe('é');
  });

  it.each([[5], [{}], [Symbol('s')], [undefined], [null]])('refuses a key that is no string: %s', (key) => {
    const document = parse('{"a":1}');
    const given = key as unknown as string;
    expect(() => document.set(given, 1)).toThrow(TypeError);
    expect(() => document.set(given, undefined)).toThrow(TypeError);
    expect(() => document.setRaw(given, Buffer.from('1'))).toThrow(TypeError);
    expect(() => document.delete(given)).toThrow(TypeError);
    expect(text(document)).toBe('{"a":1}');
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])('takes %s as a plain key', (key) => {
    const document = parse('{"a":1}');
    expect(document.has(key)).toBe(false);
    expect(document.get(key)).toBeUndefined();
    document.set(key, { polluted: true });
    expect(document.object(key)?.isTrue('polluted')).toBe(true);
    expect(text(document)).toBe(`{"a":1,"${key}":{"polluted":true}}`);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it('does not take a key for another that only looks the same in UTF-8', () => {
    const document = parse('{"\ufffd":1,"\\ud800":2}');
    expect(document.get('\ufffd')).toBe(1);
    expect(document.get('\ud800')).toBe(2);
    expect(parse('{"\u00c3":1}').has('\u00e3')).toBe(false);
  });

  it('lets go of a view whose value was replaced', () => {
    const document = parse('{"a":{"x":1}}');
    const view = document.object('a');
    document.set('a', { y: 2 });
    view?.set('x', 5);
    expect(text(document)).toBe('{"a":{"y":2}}');
    expect(view?.toBuffer().toString()).toBe('{"x":5}');
    document.object('a')?.set('z', 3);
    expect(text(document)).toBe('{"a":{"y":2,"z":3}}');
  });

  it('sees edits made through a view after it was rendered', () => {
    const document = parse('{"a":{"b":{"c":1}}}');
    const inner = document.object('a')?.object('b');
    inner?.set('c', 2);
    expect(text(document)).toBe('{"a":{"b":{"c":2}}}');
    inner?.set('c', 3);
    expect(document.raw('a')?.toString()).toBe('{"b":{"c":3}}');
    expect(text(document)).toBe('{"a":{"b":{"c":3}}}');
  });

  it('makes one buffer of a small document and never copies a large value', () => {
    const small = parse(`{"model":"a","pad":"${'x'.repeat(1000)}"}`);
    small.set('model', 'b');
    expect(small.parts()).toHaveLength(1);
    const bytes = Buffer.from(`{"model":"a","pad":"${'x'.repeat(100_000)}","stream":true}`);
    const large = JsonDocument.parse(bytes);
    large.set('model', 'b');
    large.set('temperature', 1);
    const parts = large.parts();
    expect(parts).toHaveLength(3);
    expect(parts[1]?.buffer).toBe(bytes.buffer);
    expect(Buffer.concat(parts).toString()).toBe(text(large));
  });
});

describe('JsonArray', () => {
  it('edits items in place and adds at the end', () => {
    const document = parse('{"list":[ 1.0 , {"a":1} , "x" , [2] ]}');
    const list = document.array('list');
    expect(list?.length).toBe(4);
    expect([list?.get(0), list?.string(2), list?.get(4), list?.raw(-1)]).toEqual([
      1,
      'x',
      undefined,
      undefined,
    ]);
    list?.object(1)?.set('b', 2);
    list?.array(3)?.push(3);
    list?.push({ c: null });
    list?.set(2, undefined);
    expect(text(document)).toBe('{"list":[ 1.0 , {"a":1,"b":2} , null , [2,3],{"c":null} ]}');
    list?.object(4)?.set('d', 5);
    expect(list?.raw(4)?.toString()).toBe('{"c":null,"d":5}');
    expect(() => list?.set(5, 1)).toThrow(RangeError);
  });

  it('fills an empty list', () => {
    const document = parse('{"list":[]}');
    document.array('list')?.push(1);
    document.array('list')?.push('b');
    expect(text(document)).toBe('{"list":[1,"b"]}');
  });
});
