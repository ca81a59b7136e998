import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { file, load } from '../../../test/support/small-config.js';
import { formatProblem } from './config-problem.js';
import { loadConfig } from './load-config.js';

const upstreamOf = (options: Parameters<typeof file>[0]) => load(file(options)).config.upstreams[0];

function problems(options: Parameters<typeof file>[0]): string[] {
  const result = loadConfig({ text: file(options) }, {});
  return result.ok ? [] : result.problems.map(formatProblem);
}

describe('first_token_timeout and idle_timeout', () => {
  it('are off where nobody sets them', () => {
    expect(upstreamOf({})).toMatchObject({ firstTokenTimeoutMs: 0, idleTimeoutMs: 0, prefill: null });
  });

  it('of a provider hold for its upstreams, which may set or switch off their own', () => {
    const p = 'first_token_timeout: PT20S, idle_timeout: PT1M';
    expect(upstreamOf({ p })).toMatchObject({ firstTokenTimeoutMs: 20_000, idleTimeoutMs: 60_000 });
    const u = 'first_token_timeout: PT0S, idle_timeout: PT2M';
    expect(upstreamOf({ p, u })).toMatchObject({ firstTokenTimeoutMs: 0, idleTimeoutMs: 120_000 });
  });

  it('a bad one is a warning, and the provider’s holds', () => {
    const text = file({ p: 'idle_timeout: PT1M', u: 'idle_timeout: 30' });
    const { config, warnings } = load(text);
    expect(config.upstreams[0]?.idleTimeoutMs).toBe(60_000);
    expect(warnings).toEqual([expect.stringMatching(/^upstreams\[0\]\.idle_timeout .*write PT30S/)]);
  });

  it.each<[string, number]>([
    ['PT9.999S', 1],
    ['PT10S', 0],
    ['PT0S', 0],
  ])('an idle_timeout of %s gives %i warnings, at provider and upstream', (value, count) => {
    expect(load(file({ p: `idle_timeout: ${value}` })).warnings).toHaveLength(count);
    const { warnings } = load(file({ u: `idle_timeout: ${value}` }));
    expect(warnings).toHaveLength(count);
    if (count > 0) expect(warnings[0]).toMatch(/^upstreams\[0\]\.idle_timeout \(line 3\): is under PT10S/);
  });
});

describe('prefill', () => {
  const nothing = { message: null, body: null };

  it.each<[string, string, unknown]>([
    ['', '', null],
    ['prefill: true', '', nothing],
    ['prefill: true', 'prefill: false', null],
    ['prefill: false', 'prefill: true', nothing],
    ['', 'prefill: {}', nothing],
    ['', 'prefill: { message: { prefix: true } }', { message: { prefix: true }, body: null }],
    ['prefill: { body: { a: 1 } }', '', { message: null, body: { a: 1 } }],
    ['prefill: { body: { a: 1 } }', 'prefill: { message: { b: 2 } }', { message: { b: 2 }, body: null }],
  ])('of a provider "%s", of its upstream "%s"', (p, u, prefill) => {
    expect(upstreamOf({ p, u })?.prefill).toEqual(prefill);
  });

  it.each<[string, string]>([
    ['prefill: yes', 'providers[0].prefill (line 2): must be true, false or a mapping'],
    ['prefill: [a]', 'providers[0].prefill (line 2): must be true, false or a mapping'],
    ['prefill: { message: true }', 'providers[0].prefill.message (line 2): must be a mapping'],
    ['prefill: { body: { a: .nan } }', 'providers[0].prefill.body.a (line 2): NaN is no JSON number'],
    ['prefill: { messages: {} }', 'providers[0].prefill.messages (line 2): is unknown here'],
  ])('%s is refused', (p, problem) => {
    expect(problems({ p })).toEqual([expect.stringContaining(problem)]);
  });
});

describe('on_interrupt', () => {
  it('is error where nobody sets it', () => {
    expect(load(file({})).config.models[0]?.onInterrupt).toBe('error');
    expect(load(file({ m: 'on_interrupt: error' })).warnings).toEqual([]);
  });

  it.each(['retry', 'true', '{}'])('%s is refused', (value) => {
    expect(problems({ m: `on_interrupt: ${value}` })).toEqual([
      expect.stringContaining('models[0].on_interrupt (line 4): must be error or continue'),
    ]);
  });

  const two = (a: string, b: string): string =>
    file({ m: 'on_interrupt: continue' })
      .replace('model: r }]', `model: r, ${a} }, { id: v, provider: p, model: r, ${b} }]`)
      .replace('[u]', '[u, { upstream: v }]');

  it('continue is a warning where nobody can go on', () => {
    const warning = expect.stringMatching(/^models\[0\]\.on_interrupt \(line 4\): continue needs a second/);
    expect(load(file({ u: 'prefill: true', m: 'on_interrupt: continue' })).warnings).toEqual([warning]);
    expect(load(two('prefill: false', 'prefill: false')).warnings).toEqual([warning]);
    const { config, warnings } = load(two('prefill: false', 'prefill: true'));
    expect(warnings).toEqual([]);
    expect(config.models[0]?.onInterrupt).toBe('continue');
  });
});

it('the example of docs/streams.md is a good file without warnings', () => {
  const page = readFileSync(new URL('../../../docs/streams.md', import.meta.url), 'utf8');
  const [, yaml = ''] = /```yaml\n([^]*?)```/.exec(page) ?? [];
  const { config, warnings } = load(yaml);
  expect(warnings).toEqual([]);
  expect(config.models[0]).toMatchObject({ onInterrupt: 'continue' });
});

describe('affinity', () => {
  it('is off where nobody sets it', () => {
    expect(load(file({})).config.models[0]).toMatchObject({ affinity: false, affinityWaitMs: 0 });
    expect(load(file({ m: 'affinity: off' })).config.models[0]?.affinity).toBe(false);
  });

  it('session, with the time to wait', () => {
    const { config, warnings } = load(file({ m: 'affinity: session, affinity_wait: PT2S' }));
    expect(config.models[0]).toMatchObject({ affinity: true, affinityWaitMs: 2000 });
    expect(warnings).toEqual([]);
  });

  it('anything else is refused', () => {
    expect(problems({ m: 'affinity: sesion' })).toEqual([
      'models[0].affinity (line 4): must be off or session, not "sesion"; did you mean "session"?',
    ]);
  });

  it('a time to wait without it is a warning', () => {
    expect(load(file({ m: 'affinity_wait: PT2S' })).warnings).toEqual([
      'models[0].affinity_wait (line 4): has no effect without affinity: session',
    ]);
  });

  it('the example of docs/affinity.md is a good file without warnings', () => {
    const page = readFileSync(new URL('../../../docs/affinity.md', import.meta.url), 'utf8');
    const [, yaml = ''] = /```yaml\n([^]*?)```/.exec(page) ?? [];
    const { config, warnings } = load(yaml);
    expect(warnings).toEqual([]);
    expect(config.models[0]).toMatchObject({ affinity: true });
  });
});
