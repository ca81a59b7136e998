import 'reflect-metadata';
import { describe, expect, it } from 'vitest';
import { checkReport } from './check-report.js';
import type { GatewayConfig } from './gateway-config.js';
import { formatProblem, type ConfigProblem } from './loader/config-problem.js';
import { loadConfig } from './loader/load-config.js';
import { startupLines } from './startup-lines.js';
import * as small from '../../test/support/small-config.js';

function load(value: unknown): { config: GatewayConfig; warnings: readonly ConfigProblem[] } {
  const result = loadConfig({ text: JSON.stringify(value) }, {});
  if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'));
  return result;
}
const file = {
  providers: [
    { id: 'routerai', url: 'http://h', key: 'sk-SECRET-aaaa-1111', backoff: 'P1M', max_concurrency: 7 },
    {
      id: 'local',
      url: 'http://l',
      first_byte_timeout: 'PT20S',
      think_tags: 'split',
      headers: { 'x-t': 'SECRET-header-1' },
    },
  ],
  upstreams: [
    { id: 'gpt4o', provider: 'routerai', model: 'gpt-4o', backoff: 'PT15M', probe_interval: 'PT0S' },
    { id: 'mini', provider: 'routerai', model: 'gpt-4o-mini', max_concurrency: 0 },
    { id: 'qwen', provider: 'local', model: 'qwen', request_timeout: 'PT0S', backoff: 'soon' },
  ],
  models: [
    { name: 'my-gpt', upstreams: ['qwen', 'gpt4o'] },
    { name: 'mini', upstreams: ['mini'] },
  ],
};

describe('startupLines', () => {
  it('has the fixed form', () => {
    expect(startupLines(load(file).config)).toEqual([
      'config: providers=2 upstreams=3 models=2',
      'upstream: request_timeout=300000ms',
      'backoff: upstreams=gpt4o=PT15M providers=routerai=P1M',
      'first_byte_timeout: upstreams=- providers=local=PT20S default=PT30S',
      'probe_interval: upstreams=gpt4o=PT0S providers=- default=PT1S',
    ]);
  });
  it('counts consumers, their keys and routes where there are any', () => {
    const consumers = [
      {
        id: 'a',
        keys: [
          { id: 'k', value: 'x' },
          { id: 'l', value: 'y' },
        ],
      },
      { id: 'b' },
    ];
    const first = (more: object): string | undefined => startupLines(load({ ...file, ...more }).config)[0];
    const counted = 'config: providers=2 upstreams=3 models=2';
    expect(first({ consumers })).toBe(`${counted} consumers=2 keys=2`);
    expect(first({ consumers: [], routes: [{ id: 'r', path: '/a' }] })).toBe(
      `${counted} consumers=0 keys=0 routes=1`,
    );
  });

  it('stays short with thousands of upstreams, and ids cannot forge a line', () => {
    const upstreams = Array.from({ length: 2000 }, (_, i) => ({
      id: `u\n${i}`,
      provider: 'p',
      model: 'r',
      backoff: 'PT1M',
    }));
    const { config } = load({
      providers: [{ id: 'p', url: 'http://h' }],
      upstreams,
      models: [{ name: 'm', upstreams: ['u\n0'] }],
    });
    const line = startupLines(config)[2] ?? '';
    expect(line).toMatch(/^backoff: upstreams=u\\n0=PT1M,u\\n1=PT1M,.*,u\\n19=PT1M,…\(\+1980\) providers=-$/);
  });
});

describe('checkReport', () => {
  const { config, warnings } = load(file);
  const report = checkReport(config, warnings);
  it('shows what holds for every upstream', () => {
    const cells = (id: string): string[] =>
      report
        .split('\n')
        .find((line) => line.startsWith(`${id} `))
        ?.split(/ {2,}/) ?? [];
    const names = cells('upstream');
    const row = (id: string): Record<string, string> =>
      Object.fromEntries(cells(id).map((cell, i) => [names[i], cell]));
    const common = { 'first token': 'off', idle: 'off', prefill: 'no' };
    expect(row('gpt4o')).toEqual({
      ...common,
      upstream: 'gpt4o',
      provider: 'routerai',
      model: 'gpt-4o',
      limit: '7',
      backoff: 'PT15M (own)',
      'first byte': 'PT30S',
      probe: 'off',
      recovery: 'probe',
      'request timeout': 'PT5M',
      'think tags': 'off',
      keys: '1',
      errors: 'simple',
    });
    expect(row('mini')).toMatchObject({ limit: '∞', backoff: 'P1M (shared)', probe: 'PT1S' });
    expect(row('qwen')).toMatchObject({
      ...common,
      backoff: 'none',
      'first byte': 'PT20S',
      'request timeout': '∞',
      'think tags': 'split',
    });
    // The columns stand below each other.
    const at = report
      .split('\n')
      .find((line) => line.startsWith('upstream '))
      ?.indexOf('think tags');
    expect(
      report
        .split('\n')
        .find((line) => line.startsWith('qwen '))
        ?.indexOf('split'),
    ).toBe(at);
  });
  it.each([
    ['half_open', '', ['off', 'half_open']],
    ['both', 'probe: { mode: get, path: /api/version }', ['PT1S GET /api/version', 'both']],
    ['probe', 'probe: { wake: trial }', ['PT1S → trial', 'probe']],
    ['timer', '', ['off', 'timer']],
  ])('shows how an upstream recovers: %s', (recovery, u, shown) => {
    const loaded = small.load(small.file({ p: `backoff: PT5M, recovery: ${recovery}`, u }));
    const lines = checkReport(loaded.config, []).split('\n');
    const cells = (id: string): string[] =>
      lines.find((line) => line.startsWith(`${id} `))?.split(/ {2,}/) ?? [];
    const at = cells('upstream').indexOf('probe');
    expect(cells('u').slice(at, at + 2)).toEqual(shown);
  });
  it('shows slot groups, pauses, queues and heartbeats', () => {
    const text = checkReport(
      small.load(
        small.file({
          u: 'slot_group: gpu0, settle: PT0.2S, max_concurrency: 3',
          m: 'queue: { size: 5 }, heartbeat: {}',
          end: 'slot_groups: { gpu0: 1 }',
        }),
      ).config,
      [],
    );
    expect(text).toContain('3 in gpu0=1 settle PT200MS');
    expect(text).toMatch(/model +queue\nm +5 for PT20S, heartbeat after PT10S\n/);
    expect(checkReport(small.load(small.file({})).config, [])).not.toContain('queue');
  });
  it.each([
    ['keys: [sk-SECRET-1, sk-SECRET-2]', ['2 round_robin', 'classified'], 'PT5M (classified)'],
    ['keys: [sk-SECRET-1, sk-SECRET-2], key_order: ordered, errors: simple', ['2 ordered', 'simple'], 'none'],
    ['keys: []', ['0', 'classified'], 'PT5M (classified)'],
    ['key: sk-SECRET-1, errors: { server_error: { max: PT9S } }', ['1', 'classified'], 'PT9S (classified)'],
    ['key: sk-SECRET-1, errors: classified, backoff: PT1H', ['1', 'classified'], 'PT1H (shared)'],
  ])('shows how many keys there are and how errors are told apart: %s', (p, shown, backoff) => {
    const text = checkReport(small.load(small.file({ p })).config, []);
    const lines = text.split('\n');
    const row = lines.find((line) => line.startsWith('u '));
    const names = lines.find((line) => line.startsWith('upstream '))?.split(/ {2,}/) ?? [];
    const cells = row?.split(/ {2,}/) ?? [];
    expect([cells[names.indexOf('keys')], cells[names.indexOf('errors')]]).toEqual(shown);
    expect(row).toContain(backoff);
    expect(text).not.toContain('SECRET');
  });
  it('shows the chain of every model, the warnings, and no secret', () => {
    expect(report).toContain('my-gpt  qwen → gpt4o\n');
    expect(report).toContain('warning: upstreams[2].backoff (line 1): "soon" is no duration');
    expect(report).not.toContain('SECRET');
  });
});
