import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { file, load } from '../../../test/support/small-config.js';
import { parseExpiry } from '../../common/time/expiry.js';
import { ERROR_DEFAULTS } from './build-keys.js';
import { formatProblem } from './config-problem.js';
import { loadConfig } from './load-config.js';

const provider = (p: string, environment = {}) => load(file({ p }), environment).config.providers[0];
const warnings = (p: string, environment = {}) => load(file({ p }), environment).warnings;
function problems(p: string, rest: { u?: string; m?: string } = {}): string[] {
  const result = loadConfig({ text: file({ p, ...rest }) }, {});
  return result.ok ? [] : result.problems.map(formatProblem);
}
const key = (id: string, value: string, more = {}) => ({
  id,
  value,
  expiresAtMs: null,
  disabled: false,
  quota: [],
  ...more,
});

describe('keys of a provider', () => {
  it('are none where there is one `key` or nothing: a file without pools has no pool', () => {
    expect(provider('key: sk-a')).toMatchObject({ key: 'sk-a', keys: null, errors: null });
    expect(provider('key: sk-a, errors: simple')).toMatchObject({ keys: null, errors: null });
    expect(provider('')).toMatchObject({ key: '', keys: null, errors: null });
  });

  it('are texts or mappings, with ids given or by place', () => {
    const found = provider(
      'keys: ["${A}", { id: b, value: "${B}", expires: 2999-01-31, disabled: true }, { value: " sk-c " }], key_order: ordered',
      { A: 'sk-a', B: 'sk-b' },
    );
    expect(found?.keys).toEqual([
      key('#1', 'sk-a'),
      key('b', 'sk-b', { expiresAtMs: Date.UTC(2999, 1, 1), disabled: true }),
      key('#3', 'sk-c'),
    ]);
    expect(found).toMatchObject({ key: '', keyOrder: 'ordered', errors: ERROR_DEFAULTS });
    expect(provider('keys: [sk-a]')).toMatchObject({ keyOrder: 'round_robin' });
  });

  it('are one empty key where the list is empty', () => {
    expect(provider('keys: []')?.keys).toEqual([key('#1', '')]);
    expect(warnings('keys: []')).toEqual([]);
  });

  it('are a pool of one where a single key has classified errors', () => {
    expect(provider('key: sk-a, errors: classified')?.keys).toEqual([key('#1', 'sk-a')]);
    expect(provider('errors: classified')?.keys).toEqual([key('#1', '')]);
    expect(provider('keys: [sk-a, sk-b], errors: simple')).toMatchObject({ errors: null, keys: [{}, {}] });
  });

  it('leave out an entry that is empty after substitution, and keep the places of the others', () => {
    const p = 'keys: ["${A:-}", { id: b, value: "" }, sk-c]';
    expect(provider(p)?.keys).toEqual([key('#3', 'sk-c')]);
    expect(warnings(p)).toEqual([
      'providers[0].keys[0] (line 2): is empty and therefore no key',
      'providers[0].keys[1] (line 2): is empty and therefore no key',
    ]);
    const none = 'keys: ["${A:-}"]';
    expect(provider(none)?.keys).toEqual([]);
    expect(warnings(none)).toContain(
      'providers[0].keys (line 2): holds no usable key: no upstream of this provider will be asked',
    );
  });

  it.each([
    [
      'key: sk-a, keys: [sk-b]',
      '.keys (line 2): "key" and "keys" stand side by side; write only one of them',
    ],
    ['key: "", keys: [sk-b]', '.keys (line 2): "key" and "keys" stand side by side; write only one of them'],
    ['keys: sk-b', '.keys (line 2): must be a list of keys ("- …"), not a text'],
    ['keys: [12]', '.keys[0] (line 2): must be a key or a mapping with "value", not a number'],
    ['keys: [null]', '.keys[0] (line 2): must be a key or a mapping with "value", not nothing'],
    [
      'keys: null',
      '.keys (line 2): has no value; list the keys, write [] for no authorization, or remove it',
    ],
    ['keys: ["a\\nb"]', '.keys[0] (line 2): holds a line feed; a key is one line'],
    [
      'keys: ["${NOPE}"]',
      '.keys[0] (line 2): the environment variable NOPE is not set; set it, or write ${NOPE:-default}',
    ],
    [
      'keys: [{ id: a }]',
      '.keys[0].value (line 2): the required key "value" is missing, for example ${OPENAI_KEY_B}',
    ],
    [
      'keys: [{ id: a, value: null }]',
      '.keys[0].value (line 2): the required key "value" has no value, for example ${OPENAI_KEY_B}',
    ],
    [
      'keys: [{ value: sk-a, quotaa: 1 }]',
      '.keys[0].quotaa (line 2): unknown key "quotaa" in providers[].keys[]',
    ],
    [
      'keys: [{ id: a, value: sk-a }, { id: a, value: sk-b }]',
      '.keys[1].id (line 2): "a" is already the id of keys[0]; choose another one',
    ],
    [
      'keys: [{ id: "#2", value: sk-a }, sk-b]',
      '.keys[1] (line 2): "#2" is already the id of keys[0]; choose another one',
    ],
    [
      'keys: [{ id: sk-a, value: sk-a }]',
      '.keys[0].id (line 2): the id must not be the key itself: ids are logged',
    ],
    [
      'keys: [{ value: sk-a, expires: soon }]',
      '.keys[0].expires (line 2): "soon" is no date; write a date such as',
    ],
    ['keys: [{ value: sk-a, disabled: "no" }]', '.keys[0].disabled (line 2): must be true or false'],
    ['keys: [sk-a], key_order: random', '.key_order (line 2): must be round_robin or ordered, not "random"'],
  ])('refuses %s', (p, message) => {
    expect(problems(p).join('\n')).toContain(`providers[0]${message}`);
    expect(problems(p)).toHaveLength(1);
  });

  it('never shows a key in what it says', () => {
    const secret = 'sk-super-secret-0123456789';
    const told = [
      ...problems(`keys: ["${secret}\\n1", { id: "${secret}", value: "${secret}" }]`),
      ...warnings(`keys: ["${secret}", "${secret}"]`),
    ];
    expect(told.length).toBeGreaterThan(2);
    for (const line of told) expect(line).not.toContain(secret);
  });

  it.each(['keys: [sk-a]', 'key_order: ordered', 'errors: simple', 'errors: { rate_limited: {} }'])(
    'refuses %s at an upstream: pools belong to providers',
    (u) => {
      expect(problems('', { u }).join('\n')).toMatch(
        /^upstreams\[0\]\.\w+ \(line 3\): unknown key "\w+" in upstreams\[\]; it belongs to providers\[\]/,
      );
    },
  );

  it('warns of a key order without keys, and of one key that stands twice', () => {
    expect(warnings('key: sk-a, key_order: ordered')).toEqual([
      'providers[0].key_order (line 2): has no effect without "keys"',
    ]);
    expect(warnings('keys: [sk-a, sk-a]')).toEqual([
      'providers[0].keys[1] (line 2): is the same key as keys[0]',
    ]);
  });
});

describe('expiry of a key', () => {
  beforeEach(() => void vi.useFakeTimers({ now: Date.UTC(2027, 0, 17, 12), toFake: ['Date'] }));
  afterEach(() => void vi.useRealTimers());
  const told = (expires: string, more = '') =>
    warnings(`keys: [{ value: sk-a, expires: ${expires}${more} }, sk-b]`).join('\n');

  it.each([
    ['2027-01-31', Date.UTC(2027, 1, 1)],
    ['2024-02-29', Date.UTC(2024, 2, 1)],
    ['2027-01-31T12:00:00Z', Date.UTC(2027, 0, 31, 12)],
    ['2027-01-31T12:00Z', Date.UTC(2027, 0, 31, 12)],
    ['2027-01-31t14:00:00.250+02:00', Date.UTC(2027, 0, 31, 12, 0, 0, 250)],
  ])('%s is read', (text, at) => {
    expect(parseExpiry(text)).toBe(at);
  });

  it.each([
    '2027-02-30',
    '2027-13-01',
    '2027-1-1',
    '2027-01-31T12:00:00',
    '2027-02-30T12:00:00Z',
    '2027-01-31T25:00:00Z',
    '',
    'never',
    '1800000000',
  ])('%j is no date', (text) => {
    expect(parseExpiry(text)).toBeNull();
  });

  it('is warned of 14 days ahead', () => {
    expect(told('2027-01-31')).toBe('');
    expect(told('2027-01-30')).toBe(
      'providers[0].keys[0].expires (line 2): the key expires in 13 days (2027-01-30)',
    );
    expect(told('2027-01-18')).toContain('the key expires in 1 day ');
    expect(told('2027-01-17')).toContain('the key expires in less than a day ');
    expect(told('2027-01-16')).toContain('the key expired (2027-01-16) and is not used');
    expect(told('2027-01-16', ', disabled: true')).toBe('');
  });

  it('is warned of where no key is left', () => {
    expect(
      warnings('keys: [{ value: sk-a, expires: 2020-01-01 }, { value: sk-b, disabled: true }]'),
    ).toContain(
      'providers[0].keys (line 2): holds no usable key: no upstream of this provider will be asked',
    );
  });
});

describe('errors of a provider', () => {
  it('change what they name and leave the rest', () => {
    const errors =
      'errors: { rate_limited: { rest: PT10S, max: PT1M }, quota_exhausted: { rest: PT1H }, unauthorized: { rest: PT1M }, model_gone: { rest: PT2M }, server_error: { retries: 0, rest: PT2S, max: PT20S }, busy: {}, bad_request: {}, context_length: {} }';
    expect(provider(errors)?.errors).toEqual({
      rateLimited: { restMs: 10_000, maxMs: 60_000 },
      quotaExhausted: { restMs: 3_600_000, maxMs: 86_400_000 },
      unauthorized: { restMs: 60_000 },
      modelGone: { restMs: 120_000 },
      serverError: { retries: 0, restMs: 2000, maxMs: 20_000 },
    });
    expect(provider('errors: {}')?.errors).toEqual(ERROR_DEFAULTS);
    expect(provider('errors: { rate_limited: }')?.errors).toEqual(ERROR_DEFAULTS);
  });

  it('keep a rest within its bound, and lift the default bound', () => {
    expect(provider('errors: { rate_limited: { rest: PT2H } }')?.errors?.rateLimited).toEqual({
      restMs: 7_200_000,
      maxMs: 7_200_000,
    });
    expect(provider('errors: { rate_limited: { max: PT5S } }')?.errors?.rateLimited).toEqual({
      restMs: 5000,
      maxMs: 5000,
    });
    expect(provider('errors: { unauthorized: { rest: PT0S } }')?.errors?.unauthorized).toEqual({ restMs: 0 });
  });

  it.each([
    [
      'errors: { rate_limitd: {} }',
      '.errors.rate_limitd (line 2): unknown key "rate_limitd" in providers[].errors; did you mean "rate_limited"?',
    ],
    ['errors: { busy: { rest: PT1S } }', '.errors.busy.rest (line 2): unknown key "rest"'],
    [
      'errors: { server_error: { retries: -1 } }',
      '.errors.server_error.retries (line 2): must be a whole number from 0 to 10, not -1',
    ],
    ['errors: { rate_limited: PT10S }', '.errors.rate_limited (line 2): must be a mapping, not a text'],
    ['errors: loud', '.errors (line 2): must be classified, simple or a mapping, not "loud"'],
    ['errors: [simple]', '.errors (line 2): must be classified, simple or a mapping, not a list'],
  ])('refuse %s', (p, message) => {
    expect(problems(p).join('\n')).toContain(`providers[0]${message}`);
  });

  it('tolerate a bad duration, as everywhere', () => {
    expect(warnings('errors: { rate_limited: { rest: soon } }')).toEqual([
      'providers[0].errors.rate_limited.rest (line 2): "soon" is no duration and is ignored; write PT30S, PT1M30S, PT500MS or P1D',
    ]);
  });
});

describe('context_window', () => {
  it('is read', () => {
    expect(load(file({ u: 'context_window: 8000' })).config.upstreams[0]?.contextWindow).toBe(8000);
    expect(load(file({})).config.upstreams[0]?.contextWindow).toBeNull();
  });

  it.each(['0', '-1', '1.5', '8k', '"8000"'])('refuses %s', (window) => {
    expect(problems('', { u: `context_window: ${window}` }).join('\n')).toContain(
      'upstreams[0].context_window (line 3): must be a whole number ≥ 1',
    );
  });
});
