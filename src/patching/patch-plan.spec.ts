import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonical, compact, jsonObject, KEYS, spaces, textOf } from '../../test/support/json-texts.js';
import { JsonDocument } from '../common/json/json-document.js';
import type { JsonObject } from '../config/gateway-config.js';
import { applyPatch, compilePatch } from './patch-plan.js';

function patched(body: string, layers: readonly (JsonObject | null)[]): string {
  const document = JsonDocument.parse(Buffer.from(body));
  const plan = compilePatch(layers);
  if (plan !== null) applyPatch(document, plan);
  return document.toBuffer().toString();
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The rule as the specification words it, one layer after the other. */
function naiveMerge(base: unknown, patch: JsonObject): JsonObject {
  const result: JsonObject = {};
  const put = (key: string, value: unknown): void => {
    Object.defineProperty(result, key, { value, enumerable: true, configurable: true, writable: true });
  };
  const known = new Map(isObject(base) ? Object.entries(base) : []);
  for (const [key, value] of known) put(key, value);
  for (const [key, value] of Object.entries(patch)) {
    put(key, isObject(value) ? naiveMerge(known.get(key), value) : value);
  }
  return result;
}

const { patchObject } = fc.letrec<{ value: unknown; patchObject: JsonObject }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<unknown>(null, true, 0, -1.5, 'x', 'é', '', [], [1, { a: 2 }]),
    tie('patchObject'),
    tie('patchObject'),
  ),
  patchObject: fc
    .array(fc.tuple(fc.constantFrom(...KEYS.slice(0, 6)), tie('value')), { maxLength: 4 })
    // JSON.parse, because an assignment would lose a key named __proto__.
    .map(
      (entries) =>
        JSON.parse(
          `{${entries.map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v)}`).join(',')}}`,
        ) as JsonObject,
    ),
}));

describe('compilePatch and applyPatch', () => {
  it('equal layer after layer merged naively', () => {
    fc.assert(
      fc.property(
        jsonObject,
        spaces,
        fc.array(fc.option(patchObject), { maxLength: 4 }),
        (tree, between, layers) => {
          const body = textOf(tree, between);
          const present = layers.filter((layer) => layer !== null);
          const expected = present.reduce(naiveMerge, JSON.parse(body) as JsonObject);
          expect(canonical(JSON.parse(patched(body, layers)))).toEqual(canonical(expected));
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('leave the bytes of what they do not name', () => {
    fc.assert(
      fc.property(jsonObject, spaces, patchObject, (tree, between, layer) => {
        const before = JsonDocument.parse(Buffer.from(textOf(tree, between)));
        const after = JsonDocument.parse(Buffer.from(patched(textOf(tree, between), [layer])));
        for (const key of before.keys()) {
          if (!Object.hasOwn(layer, key)) expect(after.raw(key)).toEqual(before.raw(key));
        }
      }),
    );
  });

  it.each([
    [
      'an object after a scalar replaces',
      '{"a":{"z":3}}',
      [{ a: { x: 1 } }, { a: 5 }, { a: { y: 2 } }],
      '{"a":{"y":2}}',
    ],
    [
      'objects merge',
      '{"a":{"z":1.0,"n":{"q":1e5}}}',
      [{ a: { n: { r: 1 } } }],
      '{"a":{"z":1.0,"n":{"q":1e5,"r":1}}}',
    ],
    ['arrays replace', '{"a":[1,2]}', [{ a: [3] }], '{"a":[3]}'],
    ['null sets null', '{"a":{"b":1}}', [{ a: null }], '{"a":null}'],
    [
      'an empty object changes no object',
      '{"a":{"b":1},"a":{"c":2}}',
      [{ a: {} }],
      '{"a":{"b":1},"a":{"c":2}}',
    ],
    ['an empty object replaces a scalar', '{"a":1}', [{ a: {} }], '{"a":{}}'],
    ['an empty object is added', '{}', [{ a: {} }], '{"a":{}}'],
    [
      'a layer changes what one before it put',
      '{"model":"m"}',
      [{ b: { c: 1 } }, { b: { d: 2n ** 64n } }],
      '{"model":"m","b":{"c":1,"d":18446744073709551616}}',
    ],
    ['an object over an array replaces', '{"a":[1]}', [{ a: { b: 1 } }], '{"a":{"b":1}}'],
    ['an object that is broken inside stays', '{"a":{"b" 1}}', [{ a: { c: 1 } }], '{"a":{"b" 1}}'],
    ['later scalar wins', '{"a":1}', [{ a: { b: 1 } }, { a: false }], '{"a":false}'],
  ])('%s', (_name, body, layers, expected) => {
    expect(patched(body, layers)).toBe(expected);
  });

  it('take __proto__ as a plain key', () => {
    const layer = JSON.parse(
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":2}}}',
    ) as JsonObject;
    expect(patched('{"a":{}}', [layer, layer])).toBe(
      '{"a":{},"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":2}}}',
    );
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it('have nothing to do without a patch', () => {
    expect(compilePatch([])).toBeNull();
    expect(compilePatch([null, {}])).toBeNull();
  });

  it('never carry one document into the next', () => {
    const plan = compilePatch([{ a: { x: { y: 1 } } }]);
    const results = ['{}', '{"a":{"x":{"q":1}}}', '{}'].map((body) => {
      const document = JsonDocument.parse(Buffer.from(body));
      if (plan !== null) applyPatch(document, plan);
      document.object('a')?.object('x')?.set('z', body.length);
      return compact(document.toBuffer().toString());
    });
    expect(results).toEqual([
      '{"a":{"x":{"y":1,"z":2}}}',
      '{"a":{"x":{"q":1,"y":1,"z":19}}}',
      '{"a":{"x":{"y":1,"z":2}}}',
    ]);
  });
});
