import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { labelKeyProblem } from './label-key.js';
import { LabelSelector } from './label-selector.js';
import { SelectorSyntaxError } from './selector-syntax-error.js';

const labels = (object: Record<string, string>): Map<string, string> => new Map(Object.entries(object));
const matches = (selector: string, object: Record<string, string>): boolean =>
  LabelSelector.parse(selector).matches(labels(object));

function errorOf(text: string): SelectorSyntaxError {
  try {
    LabelSelector.parse(text);
  } catch (error) {
    if (error instanceof SelectorSyntaxError) return error;
    throw error;
  }
  throw new Error(`parsed: ${text}`);
}

describe('what a selector selects', () => {
  it.each<[string, Record<string, string>, boolean]>([
    ['region=eu', { region: 'eu' }, true],
    ['region==eu', { region: 'eu' }, true],
    ['region = eu', { region: 'us' }, false],
    ['region=eu', {}, false],
    ['region!=eu', { region: 'us' }, true],
    ['region!=eu', { region: 'eu' }, false],
    ['region!=eu', {}, true],
    ['region in (eu, local)', { region: 'local' }, true],
    ['region in(eu,local)', { region: 'us' }, false],
    ['region in (eu)', {}, false],
    ['region notin (eu,us)', { region: 'local' }, true],
    ['region notin (eu,us)', { region: 'us' }, false],
    ['region notin(eu)', {}, true],
    ['region', { region: '' }, true],
    ['region', {}, false],
    ['!region', {}, true],
    ['! region', { region: 'x' }, false],
    ['a=1,b=2', { a: '1', b: '2' }, true],
    ['a=1,b=2', { a: '1', b: '3' }, false],
    ['a=1,a=2', { a: '1' }, false],
    ['a=', { a: '' }, true],
    ['a=', {}, false],
    ['a=,b', { a: '', b: 'x' }, true],
    ['a!=', { a: '' }, false],
    ['a!=', {}, true],
    ['', {}, true],
    ['  \t\n', { a: 'x' }, true],
    // Operators are words where a key or a value stands.
    ['in in (in,notin)', { in: 'notin' }, true],
    ['notin notin (in)', { notin: 'in' }, false],
    ['in', { in: '' }, true],
    ['a=in', { a: 'in' }, true],
    ['sys/model=Qwen/X:free', { 'sys/model': 'Qwen/X:free' }, true],
    ['example.com/tier in (gold, ü-1.5%)', { 'example.com/tier': 'ü-1.5%' }, true],
    ['__proto__', {}, false],
  ])('%s of %j', (selector, object, expected) => {
    // `__proto__` begins with no letter or digit, so it is no key at all.
    if (selector === '__proto__') expect(errorOf(selector).position).toBe(1);
    else expect(matches(selector, object)).toBe(expected);
  });

  it('takes no label from the prototype of an object', () => {
    expect(matches('constructor', {})).toBe(false);
    expect(matches('!toString', {})).toBe(true);
  });
});

describe('what is no selector, and where', () => {
  it.each<[string, number]>([
    ['region in (eu', 14],
    ['region in ()', 12],
    ['region in (,)', 12],
    ['region in (eu,)', 15],
    ['region in (eu,,us)', 15],
    ['region in (eu us)', 15],
    ['region in eu', 11],
    ['region in', 10],
    ['region notin', 13],
    ['region = = eu', 10],
    ['region === eu', 10],
    ['region=!x', 8],
    ['a b', 3],
    ['!', 2],
    ['!!a', 2],
    ['!a=b', 3],
    ['! =a', 3],
    ['a,,b', 3],
    ['a,', 3],
    [',a', 1],
    ['a,!', 4],
    ['a<3', 2],
    ['a > 3', 3],
    ['a="b"', 3],
    ["a='b'", 3],
    ['=b', 1],
    ['(a)', 1],
    ['a)', 2],
    ['a=b)', 4],
    ['a=b c', 5],
    ['a=(b)', 3],
    ['a IN (b)', 3],
    ['-a=b', 1],
    ['a,Pre.fix/name', 3],
    ['a/b/c', 1],
    ['/a', 1],
    ['a/', 1],
    ['a=b, é', 6],
    [`${'a'.repeat(64)}=b`, 1],
  ])('%j at %i', (text, position) => {
    const error = errorOf(text);
    expect(error.position).toBe(position);
    expect(error.message).toContain(`position ${position}`);
  });
});

describe('keys', () => {
  it.each(['a', 'A-b_c.d', '1', 'x'.repeat(63), 'example.com/a', `${'p'.repeat(253)}/a`, 'sys/provider'])(
    '%s is one',
    (key) => expect(labelKeyProblem(key)).toBeNull(),
  );
  it.each([
    '',
    '-a',
    'a-',
    'a b',
    'ä',
    'x'.repeat(64),
    `${'p'.repeat(254)}/a`,
    'A/b',
    '.a/b',
    'a..b/c',
    'a/b/c',
  ])('%s is none', (key) => expect(labelKeyProblem(key)).not.toBeNull());
});

// ---- against a reading of the same rules that shares nothing with the parser

const WORD = `[^\\s"'(),=!<>]+`;
const KEY = `(?:[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?`;
const FORMS: readonly [RegExp, (value: string | undefined, rest: string) => boolean][] = [
  [new RegExp(`^\\s*(${KEY})\\s*$`), (value) => value !== undefined],
  [new RegExp(`^\\s*!\\s*(${KEY})\\s*$`), (value) => value === undefined],
  [new RegExp(`^\\s*(${KEY})\\s*==?\\s*((?:${WORD})?)\\s*$`), (value, rest) => value === rest],
  [new RegExp(`^\\s*(${KEY})\\s*!=\\s*((?:${WORD})?)\\s*$`), (value, rest) => value !== rest],
  [
    new RegExp(`^\\s*(${KEY})\\s+in\\s*\\(\\s*(${WORD}(?:\\s*,\\s*${WORD})*)\\s*\\)\\s*$`),
    (value, rest) => value !== undefined && rest.split(',').some((one) => one.trim() === value),
  ],
  [
    new RegExp(`^\\s*(${KEY})\\s+notin\\s*\\(\\s*(${WORD}(?:\\s*,\\s*${WORD})*)\\s*\\)\\s*$`),
    (value, rest) => value === undefined || !rest.split(',').some((one) => one.trim() === value),
  ],
];

/** Undefined where the text is no selector. */
function naive(text: string, object: ReadonlyMap<string, string>): boolean | undefined {
  if (text.trim() === '') return true;
  const pieces: string[] = [''];
  let depth = 0;
  for (const character of text) {
    if (character === '(') depth++;
    if (character === ')') depth--;
    if (character === ',' && depth === 0) pieces.push('');
    else pieces[pieces.length - 1] += character;
  }
  let all = true;
  for (const piece of pieces) {
    const form = FORMS.find(([pattern]) => pattern.test(piece));
    if (form === undefined) return undefined;
    const [, key = '', rest = ''] = form[0].exec(piece) ?? [];
    if (!form[1](object.get(key), rest)) all = false;
  }
  return all;
}

function parsed(text: string, object: ReadonlyMap<string, string>): boolean | undefined {
  try {
    return LabelSelector.parse(text).matches(object);
  } catch (error) {
    if (!(error instanceof SelectorSyntaxError)) throw error;
    expect(error.position).toBeGreaterThanOrEqual(1);
    expect(error.position).toBeLessThanOrEqual(text.length + 1);
    return undefined;
  }
}

describe('against the naive reading', () => {
  const key = fc.constantFrom('a', 'b', 'in', 'notin', 'sys/model', 'x.y/z');
  const value = fc.constantFrom('', '1', '2', 'in', 'Qwen/X:free');
  const word = fc.constantFrom('1', '2', 'in', 'notin', 'Qwen/X:free');
  const gap = fc.constantFrom('', ' ', '\t ');
  const object = fc.array(fc.tuple(key, value), { maxLength: 4 }).map((pairs) => new Map(pairs));
  const requirement = fc.oneof(
    key,
    fc.tuple(gap, key).map(([space, k]) => `!${space}${k}`),
    fc
      .tuple(key, gap, fc.constantFrom('=', '==', '!='), gap, value)
      .map(([k, left, operator, right, v]) => `${k}${left}${operator}${right}${v}`),
    fc
      .tuple(key, fc.constantFrom('in', 'notin'), gap, fc.array(word, { minLength: 1, maxLength: 3 }), gap)
      .map(
        ([k, operator, left, words, inside]) =>
          `${k} ${operator}${left}(${words.join(`${inside},${inside}`)})`,
      ),
  );

  it('gives the same answer to every selector', () => {
    fc.assert(
      fc.property(fc.array(requirement, { minLength: 1, maxLength: 4 }), gap, object, (list, space, of) => {
        const text = list.join(`${space},${space}`);
        const expected = naive(text, of);
        expect(expected).toBeDefined();
        expect(parsed(text, of)).toBe(expected);
      }),
      { numRuns: 2000 },
    );
  });

  it('takes and refuses the same texts', () => {
    const piece = fc.constantFrom(
      'a',
      'b1',
      'in',
      'notin',
      '=',
      '==',
      '!=',
      '!',
      '(',
      ')',
      ',',
      ' ',
      '<',
      '"',
      '-',
      'p/q',
      'É',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 9 }), object, (pieces, of) => {
        const text = pieces.join('');
        expect(parsed(text, of)).toBe(naive(text, of));
      }),
      { numRuns: 5000 },
    );
  });
});
