import 'reflect-metadata';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { file, load } from '../../../test/support/small-config.js';
import { formatProblem } from './config-problem.js';
import { loadConfig } from './load-config.js';

function problemsOf(quota: string): string[] {
  const result = loadConfig({ text: file({ u: `quota: ${quota}` }) }, {});
  return result.ok ? [] : result.problems.map(formatProblem);
}

describe('quota in the file', () => {
  it('stands on providers, upstreams and entries of models', () => {
    const text = file({
      p: 'quota: [{ tokens: 2000000, per: P1D }]',
      u: 'quota: [{ requests: 60, per: PT1M, window: sliding }, { tokens: 5, per: " P1M " }]',
    }).replace('upstreams: [u]', 'upstreams: [{ upstream: u, quota: [{ requests: 1, per: P1W }] }]');
    const { config, warnings } = load(text);
    expect(warnings).toEqual([]);
    expect(config.providers[0]?.quota).toEqual([
      { unit: 'tokens', limit: 2_000_000, per: { text: 'P1D', ms: 86_400_000 }, window: 'calendar' },
    ]);
    expect(config.upstreams[0]?.quota).toEqual([
      { unit: 'requests', limit: 60, per: { text: 'PT1M', ms: 60_000 }, window: 'sliding' },
      { unit: 'tokens', limit: 5, per: { text: 'P1M', ms: 30 * 86_400_000 }, window: 'calendar' },
    ]);
    expect(config.models[0]?.entries[0]?.quota).toMatchObject([{ limit: 1, per: { text: 'P1W' } }]);
  });

  it.each(['', 'quota: []'])('may be absent or empty: %j', (u) => {
    const { config } = load(file({ u }));
    expect([config.upstreams[0]?.quota, config.providers[0]?.quota]).toEqual([[], []]);
    expect(config.models[0]?.entries[0]?.quota).toEqual([]);
  });

  it.each([
    ['[{ per: P1D }]', 'upstreams[0].quota[0]', 'needs tokens or requests'],
    ['[{ tokens: 1, requests: 1, per: P1D }]', 'upstreams[0].quota[0]', 'has tokens and requests'],
    ['[{ tokens: null, requests: ~, per: P1D }]', 'upstreams[0].quota[0]', 'needs tokens or requests'],
    ['[{ tokens: 0, per: P1D }]', 'upstreams[0].quota[0].tokens', 'must be a whole number ≥ 1, not 0'],
    ['[{ requests: -1, per: P1D }]', 'upstreams[0].quota[0].requests', 'must be a whole number ≥ 1'],
    ['[{ requests: 1.5, per: P1D }]', 'upstreams[0].quota[0].requests', 'must be a whole number ≥ 1'],
    ['[{ requests: "10", per: P1D }]', 'upstreams[0].quota[0].requests', 'remove the quotes'],
    ['[{ requests: .inf, per: P1D }]', 'upstreams[0].quota[0].requests', 'must be a whole number ≥ 1'],
    ['[{ requests: 1 }]', 'upstreams[0].quota[0].per', 'the required key "per" is missing'],
    ['[{ requests: 1, per: ~ }]', 'upstreams[0].quota[0].per', 'has no value'],
    ['[{ requests: 1, per: day }]', 'upstreams[0].quota[0].per', 'must be a duration such as'],
    ['[{ requests: 1, per: 60 }]', 'upstreams[0].quota[0].per', 'must be a duration such as'],
    ['[{ requests: 1, per: PT0S }]', 'upstreams[0].quota[0].per', 'must be longer than "PT0S"'],
    ['[{ requests: 1, per: P1D, window: rolling }]', 'upstreams[0].quota[0].window', 'calendar or sliding'],
    ['[{ request: 1, per: P1D }]', 'upstreams[0].quota[0].request', 'did you mean "requests"?'],
    ['{ requests: 1, per: P1D }', 'upstreams[0].quota', 'must be a list of quotas ("- …"), not a mapping'],
    ['5', 'upstreams[0].quota', 'must be a list of quotas'],
    ['[5]', 'upstreams[0].quota[0]', 'must be a mapping (one quota), not a number'],
    ['[{ tokens: 1, per: P1D }, { tokens: 2, per: PT24H }]', 'upstreams[0].quota[1]', 'the same as [0]'],
  ])('%s is refused at %s: %s', (quota, path, text) => {
    const found = problemsOf(quota).filter((problem) => problem.startsWith(`${path} (line 3): `));
    expect(found.join('\n')).toContain(text);
  });

  it('tells all that is wrong at once', () => {
    expect(problemsOf('[{ tokens: x, per: soon }, { window: 1 }]')).toHaveLength(5);
  });

  it.each([
    '[{ tokens: 1, per: P1D }, { requests: 1, per: P1D }]',
    '[{ tokens: 1, per: P1D }, { tokens: 1, per: P1D, window: sliding }]',
    '[{ tokens: 1, per: P1M }, { tokens: 1, per: P30D }]',
  ])('takes %s: they count different things', (quota) => {
    expect(problemsOf(quota)).toEqual([]);
  });

  it('gives a good configuration or a problem for whatever stands there', () => {
    const value = fc.oneof(fc.jsonValue(), fc.constantFrom(1, 'P1D', 'PT1S', 'sliding', null));
    const item = fc.record(
      { tokens: value, requests: value, per: value, window: value },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(fc.array(item, { maxLength: 3 }), value), (quota) => {
        const text = file({ u: `quota: ${JSON.stringify(quota)}` });
        const result = loadConfig({ text }, {});
        if (!result.ok)
          expect(result.problems.every(({ path }) => path.startsWith('upstreams[0].quota'))).toBe(true);
        else {
          for (const { limit, per } of result.config.upstreams[0]?.quota ?? [])
            expect(Number.isSafeInteger(limit) && limit >= 1 && per.ms > 0).toBe(true);
        }
      }),
    );
  });
});

describe('usage of a provider', () => {
  it.each([
    ['', true],
    ['usage: on', true],
    ['usage: true', true],
    ['usage: off', false],
    ['usage: false', false],
  ])('%j', (p, asked) => {
    expect(load(file({ p })).config.providers[0]?.asksUsage).toBe(asked);
  });
  it('is refused where it is another word', () => {
    const result = loadConfig({ text: file({ p: 'usage: never' }) }, {});
    expect(result.ok ? [] : result.problems.map(formatProblem)).toEqual([
      'providers[0].usage (line 2): must be on or off, not "never"',
    ]);
  });
});

describe('state in the file', () => {
  it('keeps nothing by default, and a file relative to the configuration', () => {
    expect(load(file({})).config.state.file).toBeNull();
    expect(load(file({ end: 'state: { store: memory }' })).config.state.file).toBeNull();
    const text = file({ end: 'state: { file: ./state/quotas.json }' });
    const result = loadConfig({ text, directory: '/etc/llm-proxy' }, {});
    expect(result.ok && result.config.state.file).toBe('/etc/llm-proxy/state/quotas.json');
  });
  it.each([
    ['state: memory', 'state (line 5): must be a mapping, not a text'],
    ['state: { store: disk }', 'state.store (line 5): must be memory or redis, not "disk"'],
    ['state: { file: 5 }', 'state.file (line 5): must be a text, not 5; quote it'],
    ['state: { file: "" }', 'state.file (line 5): must not be empty'],
  ])('%s is refused', (end, problem) => {
    const result = loadConfig({ text: file({ end }) }, {});
    expect(result.ok ? [] : result.problems.map(formatProblem)).toEqual([problem]);
  });
});
