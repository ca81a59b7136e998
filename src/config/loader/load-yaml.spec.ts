import 'reflect-metadata';
import { describe, expect, it } from 'vitest';
import { formatProblem } from './config-problem.js';
import { loadConfig } from './load-config.js';
import { file, load } from '../../../test/support/small-config.js';

describe('YAML', () => {
  const patchOf = (text: string): unknown => load(file({ p: `patch: ${text}` })).config.providers[0]?.patch;

  it('knows anchors, aliases and merge keys', () => {
    const { config } = load(`providers:
  - &base
    id: p1
    url: "http://h1"
    patch: &pt { x: { y: 1 } }
    max_concurrency: 2
  - <<: *base
    id: p2
  - { <<: [{ url: "http://h3" }, *base], id: p3 }
upstreams:
  - { id: u1, provider: p2, model: r, patch: *pt }
  - { id: u2, provider: p1, model: r }
  - { id: u3, provider: p3, model: r }
models: [{ name: m, upstreams: [u1, u2, u3] }]
`);
    expect(config.providers.map(({ id, url, patch }) => [id, url, patch])).toEqual([
      ['p1', 'http://h1', { x: { y: 1 } }],
      ['p2', 'http://h1', { x: { y: 1 } }],
      ['p3', 'http://h3', { x: { y: 1 } }],
    ]);
    expect(config.upstreams[0]).toMatchObject({ limit: 2, patch: { x: { y: 1 } } });
  });

  it('names the line of a mistake that came through a merge', () => {
    const result = loadConfig(
      {
        text: `${file({}).replace('upstreams: [', 'upstreams: [\n  &b { id: x, provider: p, model: r,\n   backof: PT1S },\n  { <<: *b, id: y },\n ')}`,
      },
      {},
    );
    expect(result.ok ? [] : result.problems.map(({ path, line }) => [path, line])).toEqual([
      ['upstreams[0].backof', 5],
      ['upstreams[1].backof', 5],
    ]);
  });

  it.each([
    [
      'billion laughs',
      `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefghi'.replace(
        /./g,
        (n) =>
          `    ${n}: &${n} [${Array(9)
            .fill(`*${String.fromCharCode(n.charCodeAt(0) - 1)}`)
            .join(',')}]\n`,
      )}`,
    ],
    ['one long list, many times', `a: &a [${'x,'.repeat(2000)}]\n    b: [${'*a,'.repeat(2000)}]\n`],
  ])('refuses an alias bomb: %s', (_, bomb) => {
    const text = `providers:\n - id: p\n   url: "http://h"\n   patch:\n    ${bomb}upstreams: [{ id: u, provider: p, model: r }]\nmodels: [{ name: m, upstreams: [u] }]\n`;
    const result = loadConfig({ text }, {});
    expect(result.ok ? [] : result.problems.map(({ message }) => message)).toEqual([
      'the aliases of this file expand to far too many values',
    ]);
  });

  it.each([
    ['lists of lists', (n: number) => `x:\n  ${'- '.repeat(n)}1`],
    ['lists in brackets', (n: number) => `x: ${'['.repeat(n)}${']'.repeat(n)}`],
    ['mappings', (n: number) => `x: ${'{a: '.repeat(n)}1${'}'.repeat(n)}`],
    ['lists in JSON', (n: number) => `{"x": ${'['.repeat(n)}${']'.repeat(n)}}`],
    ['keys that are mappings', (n: number) => `x:\n  ${'? '.repeat(n)}a`],
  ])('says with a line that something is nested too deeply: %s', (_, nested) => {
    for (const levels of [3_000, 30_000]) {
      const result = loadConfig({ text: nested(levels) }, {});
      const told = result.ok ? [] : result.problems.map(formatProblem);
      expect(told[0]).toMatch(/^line [12]: nested too deeply$/);
    }
  });

  it('lets a thousand entries share one base', () => {
    const entries = Array.from({ length: 1000 }, (_, i) => `  - { <<: *b, id: u${i} }`).join('\n');
    const text = `providers: [{ id: p, url: "http://h" }]\nupstreams:\n  - &b { id: u, provider: p, model: r, patch: { a: [1, 2, 3], b: { c: d } }, backoff: PT1M }\n${entries}\nmodels: [{ name: m, upstreams: [u] }]\n`;
    expect(load(text).config.upstreams).toHaveLength(1001);
  });

  it('keeps what JSON can hold in a patch', () => {
    expect(
      patchOf(
        '{ a: 12345678901234567890, b: 9007199254740991, c: 2020-01-01, d: no, e: ~, 1: x, true: y, f: 0x10 }',
      ),
    ).toEqual({
      a: 12345678901234567890n,
      b: 9007199254740991,
      c: '2020-01-01',
      d: 'no',
      e: null,
      1: 'x',
      true: 'y',
      f: 16,
    });
  });

  it('takes __proto__ and constructor for plain keys', () => {
    for (const text of [
      '{ __proto__: { polluted: 1 }, constructor: { prototype: { polluted: 1 } } }',
      '{ <<: { __proto__: { polluted: 1 } } }',
    ]) {
      const patch = patchOf(text) as Record<string, unknown>;
      expect(Object.hasOwn(patch, '__proto__')).toBe(true);
      expect(JSON.stringify(patch)).toContain('"__proto__":{"polluted":1}');
    }
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it('accepts a byte order mark, CRLF, %YAML, and stays YAML 1.2', () => {
    const text = file({ p: 'think_tags: off, patch: { a: yes, b: 010 }' });
    for (const variant of [
      `\ufeff${text}`,
      text.replaceAll('\n', '\r\n'),
      `%YAML 1.1\n---\n${text}`,
      `---\n${text}...\n`,
    ]) {
      expect(load(variant).config.providers[0]?.patch).toEqual({ a: 'yes', b: 10 });
    }
  });

  it('refuses what is nested without end', () => {
    for (const depth of [150, 20_000]) {
      const result = loadConfig(
        { text: file({ p: `patch: { a: ${'['.repeat(depth)}${']'.repeat(depth)} }` }) },
        {},
      );
      expect(result.ok ? '' : result.problems.map(({ message }) => message).join()).toMatch(/nested/);
    }
  });

  it('reads ids with any characters', () => {
    const id = 'a\r\nx-evil: 1\u0000\u0085\ud800%0d"';
    const text = JSON.stringify({
      providers: [{ id, url: 'http://h' }],
      upstreams: [{ id, provider: id, model: id }],
      models: [{ name: id, upstreams: [id] }],
    });
    expect(load(text).config.models[0]?.upstreams[0]?.provider.id).toBe(id);
    const result = loadConfig({ text: text.replace('"model":', '"modle":') }, {});
    expect(result.ok ? '' : result.problems.map(formatProblem).join()).not.toMatch(/[\p{Cc}\p{Cs}]/u);
  });
});
