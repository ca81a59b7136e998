import { describe, expect, it } from 'vitest';
import { file, load } from '../../../test/support/small-config.js';
import type { UpstreamConfig } from '../gateway-config.js';
import { loadConfig } from './load-config.js';

const upstream = (p: string, u = ''): UpstreamConfig =>
  load(file({ p, u })).config.upstreams[0] as UpstreamConfig;
const warnings = (p: string, u = ''): string[] => load(file({ p, u })).warnings;
function problems(p: string, u = ''): string[] {
  const result = loadConfig({ text: file({ p, u }) }, {});
  return result.ok ? [] : result.problems.map(({ path, message }) => `${path}: ${message}`);
}

describe('backoff', () => {
  it('has a short and a long form', () => {
    expect(upstream('backoff: PT5M').provider.backoff).toEqual({ text: 'PT5M', ms: 300_000, baseMs: 1000 });
    expect(upstream('backoff: { base: PT5S, cap: PT5M }').provider.backoff).toEqual({
      text: 'PT5M(base PT5S)',
      ms: 300_000,
      baseMs: 5000,
    });
    expect(upstream('', 'backoff: { cap: PT5M }').backoff).toEqual({
      text: 'PT5M',
      ms: 300_000,
      baseMs: 1000,
    });
  });

  it('of an upstream is a counter of its own, in either form', () => {
    const { backoff, provider } = upstream('backoff: { base: PT5S, cap: PT5M }', 'backoff: PT1M');
    expect([backoff?.baseMs, provider.backoff?.baseMs]).toEqual([1000, 5000]);
  });

  it.each([
    ['backoff: { base: soon, cap: PT5M }', 'providers[0].backoff.base', 'is no duration and is ignored'],
    ['backoff: { base: PT0S, cap: PT5M }', 'providers[0].backoff.base', 'is no rest and is ignored'],
    ['backoff: { base: PT5S, cap: 300 }', 'providers[0].backoff.cap', 'write PT300S'],
    ['backoff: { base: PT10M, cap: PT5M }', 'providers[0].backoff.base', 'is longer than cap'],
    ['backoff: 300', 'providers[0].backoff', 'write PT300S'],
    ['backoff: [PT5M]', 'providers[0].backoff', 'is no duration'],
  ])('%s is a warning', (p, path, message) => {
    expect(warnings(p).filter((line) => line.startsWith(path) && line.includes(message))).toHaveLength(1);
  });

  it('falls back to what holds without the ignored value', () => {
    expect(upstream('backoff: { base: PT0S, cap: PT5M }').provider.backoff?.baseMs).toBe(1000);
    expect(upstream('backoff: { base: PT5S, cap: 300 }').provider.backoff).toBeNull();
  });

  it('refuses a long form without a cap, or with another key', () => {
    expect(problems('backoff: { base: PT5S, max: PT5M }')).toEqual([
      expect.stringContaining('providers[0].backoff.max: unknown key "max" in '),
      expect.stringContaining('providers[0].backoff.cap: the required key "cap" is missing'),
    ]);
  });
});

describe('recovery', () => {
  it('is probe where nobody says otherwise, and the upstream has the last word', () => {
    expect(upstream('').recovery).toBe('probe');
    expect(upstream('recovery: half_open, backoff: PT5M').recovery).toBe('half_open');
    expect(upstream('recovery: half_open, backoff: PT5M', 'recovery: timer').recovery).toBe('timer');
    expect(upstream('recovery: both, backoff: PT5M', 'recovery: null').recovery).toBe('both');
  });

  it.each([
    ['recovery: halfopen', 'did you mean "half_open"?'],
    ['recovery: true', 'must be probe, half_open, both or timer, not true'],
    ['recovery: [probe]', 'must be probe, half_open, both or timer, not a list'],
  ])('refuses %s', (p, message) => {
    expect(problems(p)).toEqual([expect.stringContaining(message)]);
  });

  it('warns where nothing rests that could recover', () => {
    const nothing = 'has no effect: nothing rests without a backoff';
    expect(warnings('recovery: half_open')).toEqual([expect.stringContaining(nothing)]);
    expect(warnings('', 'recovery: half_open, probe: { wake: trial }')).toEqual([
      expect.stringContaining(`upstreams[0].recovery (line 3): ${nothing}`),
      expect.stringContaining(`upstreams[0].probe (line 3): ${nothing}`),
    ]);
    expect(warnings('recovery: half_open', 'backoff: PT5M')).toEqual([]);
    expect(warnings('backoff: PT5M', 'recovery: half_open')).toEqual([]);
    expect(warnings('backoff: never, recovery: half_open')).toHaveLength(2);
  });
});

describe('probe', () => {
  it('is a completion that wakes fully where nobody says otherwise', () => {
    expect(upstream('').probe).toEqual({
      mode: 'completion',
      path: '/health',
      expect: [200],
      wake: 'full',
    });
  });

  it('is taken key by key: upstream, provider, default', () => {
    const p = 'backoff: PT5M, probe: { mode: get, path: /api/version, expect: 204, wake: trial }';
    expect(upstream(p, 'probe: { path: /health, expect: [200, 503] }').probe).toEqual({
      mode: 'get',
      path: '/health',
      expect: [200, 503],
      wake: 'trial',
    });
    expect(upstream(p, 'probe: { mode: completion, wake: full }').probe).toMatchObject({
      mode: 'completion',
      wake: 'full',
    });
    expect(upstream(p, 'probe: null').probe.path).toBe('/api/version');
  });

  it.each([
    ['probe: get', 'must be a mapping'],
    ['probe: { mode: head }', 'must be completion or get, not "head"'],
    ['probe: { mode: completon }', 'did you mean "completion"?'],
    ['probe: { wake: never }', 'must be full or trial'],
    ['probe: { paht: /x }', 'did you mean "path"?'],
    ['probe: { path: health }', 'must be a path from the root of the host'],
    ['probe: { path: //other/health }', 'must be a path from the root of the host'],
    ['probe: { path: "https://other/health" }', 'without scheme and host'],
    ['probe: { path: "/a b" }', 'percent-encoded'],
    ['probe: { path: "/ä" }', 'percent-encoded'],
    ['probe: { path: "/a\\r\\nx: y" }', 'percent-encoded'],
    ['probe: { path: "/a#b" }', 'without "#"'],
    ['probe: { path: 5 }', 'must be a text'],
    ['probe: { path: [/a] }', 'must be a text'],
    ['probe: { expect: "200" }', 'must be a status from 200 to 599'],
    ['probe: { expect: 99 }', 'must be a status from 200 to 599'],
    ['probe: { expect: 101 }', 'must be a status from 200 to 599'],
    ['probe: { expect: [] }', 'the list is empty'],
    ['probe: { expect: [200, ok] }', 'providers[0].probe.expect[1]: must be a status'],
  ])('refuses %s', (p, message) => {
    expect(problems(`backoff: PT5M, ${p}`)).toEqual([expect.stringContaining(message)]);
  });

  it.each(['/', '/health', '/api/version?full=1', '/v1/models/a%20b', "/it's~$"])('takes %s', (path) => {
    const text = `backoff: PT5M, probe: { mode: get, wake: trial, path: "${path}" }`;
    expect(upstream(text).probe.path).toBe(path);
    expect(warnings(text)).toEqual([]);
  });

  it('warns of keys that have no effect', () => {
    expect(warnings('backoff: PT5M, probe: { path: /health, expect: 200 }')).toEqual([
      expect.stringContaining('providers[0].probe.path (line 2): has no effect: it belongs to mode: get'),
      expect.stringContaining('providers[0].probe.expect (line 2): has no effect'),
    ]);
    expect(warnings('backoff: PT5M, probe: { path: /health }', 'probe: { mode: get }')).toEqual([]);
    for (const recovery of ['half_open', 'timer'])
      expect(warnings(`backoff: PT5M, recovery: ${recovery}, probe: { mode: get }`)).toEqual([
        expect.stringContaining('providers[0].probe (line 2): has no effect: with this recovery no probes'),
      ]);
    expect(warnings('backoff: PT5M, recovery: half_open, probe: { mode: get }', 'recovery: both')).toEqual(
      [],
    );
  });

  const surprise = 'often answers while completions still fail; write wake: trial';
  it.each(['/v1/models', '/v1/models/', '/v1/models?limit=1', '/v1/models/gpt-4o', '/api/tags', '/models'])(
    'warns where a success at %s ends the rest',
    (path) => {
      const p = `backoff: PT5M, probe: { mode: get, path: "${path}" }`;
      expect(warnings(p)).toEqual([expect.stringContaining(`providers[0].probe.path (line 2): ${path}`)]);
      expect(warnings(p)[0]).toContain(surprise);
      expect(warnings(p.replace('mode: get', 'mode: get, wake: trial'))).toEqual([]);
    },
  );

  it('says so once, where it comes from', () => {
    const p = 'backoff: PT5M, probe: { mode: get, path: /v1/models, wake: trial }';
    expect(warnings(p, 'probe: { wake: full }')).toEqual([
      expect.stringContaining('upstreams[0].probe (line 3): /v1/models often'),
    ]);
    const full = p.replace(', wake: trial', '');
    expect(warnings(full, 'probe: { expect: 201 }')).toEqual([expect.stringContaining('providers[0]')]);
    expect(warnings(full, 'probe: { wake: trial }')).toEqual([]);
    expect(warnings(full, 'probe: { path: /health }')).toEqual([]);
  });
});
