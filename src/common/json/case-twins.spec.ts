import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CaseTwins } from './case-twins.js';
import { JsonDocument } from './json-document.js';

const twins = new CaseTwins(['model', 'tasks']);
const found = (text: string): string | undefined => JsonDocument.parse(Buffer.from(text)).caseTwin(twins);

describe('CaseTwins', () => {
  it.each([
    ['{"model":1,"Model":2}', 'Model'],
    ['{"Model":2,"model":1}', 'Model'],
    ['{"MODEL":1}', 'MODEL'],
    [String.raw`{"\u004dodel":1}`, 'Model'],
    [String.raw`{"mod\u0045l":1}`, 'modEl'],
    ['{"taſks":1}', 'taſks'],
    ['{"TASKS":1}', 'TASKS'],
    ['{"taſkſ":1}', 'taſkſ'],
    [String.raw`{"tas\u212As":1}`, 'tas\u212as'],
    ['{"tas\u212as":1}', 'tas\u212as'],
  ])('finds a key that is one of the names but for case: %s', (text, key) => {
    expect(found(text)).toBe(key);
  });

  it.each([
    '{"model":1,"tasks":2}',
    '{"model":1,"model":2}',
    String.raw`{"m\u006fdel":1}`,
    '{"models":1,"mode":2,"Modes":3,"input":4}',
    '{"mödel":1,"tasks ":2}',
    '{"a":{"Model":1}}',
    '{"ta\u0131ks":1}',
    '{}',
  ])('lets pass what is none: %s', (text) => {
    expect(found(text)).toBeUndefined();
  });

  it('tells keys of a walk too, which have one character for each byte', () => {
    expect(twins.of(Buffer.from('taſ\u212aS').toString('latin1'))).toBe('tasks');
  });

  it('finds every way to write a name, and nothing else', () => {
    const WAYS: Record<string, string[]> = {
      s: ['s', 'S', 'ſ', '\\u017f', '\\u0053'],
      k: ['k', 'K', '\u212a', '\\u212a'],
    };
    const letter = (c: string) => fc.constantFrom(...(WAYS[c] ?? [c, c.toUpperCase()]));
    const written = fc.tuple(...Array.from('tasks', letter)).map((parts) => parts.join(''));
    fc.assert(
      fc.property(written, fc.boolean(), (key, more) => {
        const text = `{"x":0,"${key}${more ? 'x' : ''}":1}`;
        const isTwin = !more && JSON.parse(`"${key}"`) !== 'tasks';
        expect(found(text)).toBe(isTwin ? JSON.parse(`"${key}"`) : undefined);
      }),
    );
  });
});
