import 'reflect-metadata';
import { mkdtempSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { formatProblem } from './config-problem.js';
import { loadConfig } from './load-config.js';
import { file, load, type Variables } from '../../../test/support/small-config.js';

const provider = (p: string, environment?: Variables) => load(file({ p }), environment).config.providers[0]!;
const upstream = (p: string, u: string, server = '') => load(file({ p, u, server })).config.upstreams[0]!;

describe('defaults and inheritance', () => {
  it('gives every default', () => {
    const { config, warnings } = load(file({}));
    expect(warnings).toEqual([]);
    expect(config).toMatchObject({
      path: null,
      server: {
        host: '0.0.0.0',
        port: 8100,
        requestTimeoutMs: 300_000,
        bodyLimitBytes: 64 * 1024 ** 2,
        shutdownGraceMs: 30_000,
        cors: [],
        metricsToken: null,
        adminToken: null,
        metricsConsumers: 1000,
      },
      consumers: null,
      routes: [{ id: 'default', path: '/v1', upstreams: null, maxAttempts: Infinity }],
      plugins: [],
      disable: [],
    });
    expect(config.providers[0]).toEqual({
      id: 'p',
      url: 'http://h',
      key: '',
      proxy: null,
      tls: null,
      keys: null,
      keyOrder: 'round_robin',
      errors: null,
      auth: null,
      disabled: false,
      headers: [],
      patch: null,
      sessionHeader: null,
      reasoningField: null,
      reasoningEmptyOk: false,
      backoff: null,
      firstByteTimeout: null,
      probeInterval: null,
      quota: [],
      asksUsage: true,
    });
    expect(config.upstreams[0]).toMatchObject({
      limit: Infinity,
      thinkTags: 'off',
      firstByteTimeoutMs: 30_000,
      probeIntervalMs: 1000,
      requestTimeoutMs: 300_000,
    });
    expect(config.upstreams[0]?.provider).toBe(config.providers[0]);
    expect(config.models[0]?.upstreams[0]).toBe(config.upstreams[0]);
  });

  it.each([
    ['', '', Infinity],
    ['max_concurrency: 4', '', 4],
    ['max_concurrency: 4', 'max_concurrency: 2', 2],
    ['max_concurrency: 4', 'max_concurrency: 0', Infinity],
    ['max_concurrency: 4', 'max_concurrency: null', Infinity],
    ['max_concurrency: 0', '', Infinity],
    ['max_concurrency: null', '', Infinity],
    ['max_concurrency: null', 'max_concurrency: 3', 3],
  ])('limit of provider {%s} and upstream {%s} is %d', (p, u, limit) => {
    expect(upstream(p, u).limit).toBe(limit);
  });

  it.each([
    ['', '', 'off'],
    ['think_tags: split', '', 'split'],
    ['think_tags: split', 'think_tags: strip', 'strip'],
    ['think_tags: split', 'think_tags: off', 'off'],
    ['think_tags: split', 'think_tags: "off"', 'off'],
    ['think_tags: split', 'think_tags: false', 'off'],
    ['think_tags: split', 'think_tags: null', 'split'],
    ['think_tags: split', 'think_tags: sideways', 'off'],
    ['think_tags: split', 'think_tags: ""', 'off'],
    ['think_tags: true', '', 'split'],
    ['think_tags: "true"', '', 'split'],
    ['think_tags: [split]', '', 'off'],
    ['think_tags: 1', '', 'off'],
  ])('think tags of provider {%s} and upstream {%s} are %s', (p, u, mode) => {
    expect(upstream(p, u).thinkTags).toBe(mode);
  });

  it('lets the most specific duration win, an explicit PT0S too', () => {
    const p = 'first_byte_timeout: PT20S, probe_interval: PT2S, request_timeout: PT9M, backoff: P1M';
    expect(upstream(p, '')).toMatchObject({
      firstByteTimeoutMs: 20_000,
      probeIntervalMs: 2000,
      requestTimeoutMs: 540_000,
      backoff: null,
      firstByteTimeout: null,
    });
    const u = 'first_byte_timeout: PT0S, probe_interval: PT0S, request_timeout: PT0S, backoff: PT15M';
    expect(upstream(p, u)).toMatchObject({
      firstByteTimeoutMs: 0,
      probeIntervalMs: 0,
      requestTimeoutMs: 0,
      backoff: { text: 'PT15M', ms: 900_000 },
      firstByteTimeout: { text: 'PT0S', ms: 0 },
    });
    expect(upstream('', '', 'request_timeout: PT7M').requestTimeoutMs).toBe(420_000);
  });

  it('takes null for an optional key as absent', () => {
    const p = [
      'key',
      'headers',
      'patch',
      'session_header',
      'reasoning_field',
      'reasoning_empty_ok',
      'backoff',
    ];
    const { config, warnings } = load(
      file({ p: p.map((key) => `${key}: null`).join(', '), end: 'plugins:\ndisable:\n' }),
    );
    expect(warnings).toEqual([]);
    expect(config.providers).toEqual(load(file({})).config.providers);
    expect(load(file({}).replace('server: {  }', 'server:')).config.server.port).toBe(8100);
  });

  it.each([
    ['64MiB', 67_108_864],
    ['64KiB', 65_536],
    ['1GiB', 1_073_741_824],
    ['10MB', 10_000_000],
    ['500kB', 500_000],
    ['1000B', 1000],
    ['1000', 1000],
    ['"1000"', 1000],
  ])('body_limit: %s is %d bytes', (written, bytes) => {
    expect(load(file({ server: `body_limit: ${written}` })).config.server.bodyLimitBytes).toBe(bytes);
  });

  it.each([
    ['http://h/v1/', 'http://h/v1'],
    ['http://h///', 'http://h'],
    ['HTTPS://Host:443/a//b/', 'https://host/a//b'],
    ['http://[::1]:8080/v1', 'http://[::1]:8080/v1'],
    ['https://h/v1/@cf', 'https://h/v1/@cf'],
  ])('the url %s is kept as %s', (written, kept) => {
    expect(load(file({ url: written })).config.providers[0]?.url).toBe(kept);
  });

  it('keeps headers in order with lower-case names, plugins with their place, and lists', () => {
    expect(provider('headers: { X-B: "1", x-a: "" }, session_header: X-Sess')).toMatchObject({
      headers: [
        ['x-b', '1'],
        ['x-a', ''],
      ],
      sessionHeader: 'x-sess',
    });
    const { config } = load(
      file({
        server: 'cors: ["*", "https://a.b:8443", "app://x"]',
        end: 'plugins: [{ module: "@a/b" }, { module: ./c.js, config: { d: 1 } }]\ndisable: [think-tags]\n',
      }),
    );
    expect(config.plugins).toEqual([
      { module: '@a/b', config: null, path: ['plugins', 0] },
      { module: './c.js', config: { d: 1 }, path: ['plugins', 1] },
    ]);
    expect([config.disable, config.server.cors]).toEqual([
      ['think-tags'],
      ['*', 'https://a.b:8443', 'app://x'],
    ]);
  });

  it('is frozen through and through', () => {
    const { config } = load(file({ p: 'patch: { a: { b: [1] } }' }));
    expect(() => Object.assign(config.server, { port: 1 })).toThrow(TypeError);
    expect(() => (config.providers[0]!.patch!['a'] as { b: number[] }).b.push(2)).toThrow(TypeError);
  });
});

describe('warnings', () => {
  it.each([
    [
      file({ server: 'request_timeout: 90 seconds' }),
      'server.request_timeout (line 1): "90 seconds" is no duration and is ignored; write PT30S',
    ],
    [
      file({ u: 'backoff: 30' }),
      'upstreams[0].backoff (line 3): 30 is no duration and is ignored; write PT30S',
    ],
    [file({ u: 'backoff: -PT1S' }), 'upstreams[0].backoff (line 3): "-PT1S" is no duration'],
    [file({ u: 'backoff: ""' }), 'upstreams[0].backoff (line 3): "" is no duration'],
    [file({ u: 'backoff: [PT1S]' }), 'upstreams[0].backoff (line 3): a list is no duration'],
    [
      file({ p: 'think_tags: sideways' }),
      'providers[0].think_tags (line 2): "sideways" is unknown and means off; write off, split or strip',
    ],
    [
      `${file({}).replace('}]\nmodels', '}, { id: lonely, provider: p, model: r }]\nmodels')}`,
      'upstreams[1] (line 3): the upstream "lonely" is used by no model',
    ],
    [
      `${file({}).replace('}]\nupstreams', '}, { id: lone, url: "http://h" }]\nupstreams')}`,
      'providers[1] (line 2): the provider "lone" is used by no upstream',
    ],
  ])('%#', (text, warning) => {
    const { config, warnings } = load(text);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain(warning);
    expect(config.server.requestTimeoutMs).toBe(300_000);
    expect(config.upstreams[0]?.backoff).toBeNull();
  });
});

describe('variables', () => {
  it.each<[string, Variables, string]>([
    ['${A}', { A: 'sk-1' }, 'sk-1'],
    ['a-${A}-${B}', { A: '1', B: '$&' }, 'a-1-$&'],
    ['${A:-d}', {}, 'd'],
    ['${A:-d}', { A: '' }, 'd'],
    ['${A:-d}', { A: 'x' }, 'x'],
    ['${A:-}', {}, ''],
    ['${A}', { A: '' }, ''],
    ['${A:-${B:-c}}', {}, 'c'],
    ['${A:-${B}}', { A: 'x' }, 'x'],
    ['$${A}', {}, '${A}'],
    ['$A $', {}, '$A $'],
    ['${A}', { A: '${B}' }, '${B}'],
    ['  ${A} ', { A: '\tsk-2\n' }, 'sk-2'],
  ])('key %j with %j is %j', (written, environment, key) => {
    expect(provider(`key: ${JSON.stringify(written)}`, environment).key).toBe(key);
  });
  it('are replaced in url and header values, and nowhere else', () => {
    const text = file({
      url: 'http://h:${PORT}/v1',
      p: 'headers: { x-a: "b-${A}" }, patch: { t: "${A}" }, reasoning_field: "${A}"',
    });
    expect(load(text, { PORT: '81', A: 'x' }).config.providers[0]).toMatchObject({
      url: 'http://h:81/v1',
      headers: [['x-a', 'b-x']],
      patch: { t: '${A}' },
      reasoningField: '${A}',
    });
  });
});

describe('files', () => {
  const directory = mkdtempSync(join(tmpdir(), 'config-'));
  const messageOf = (path: string): string => {
    const result = loadConfig({ path }, {});
    return result.ok ? '' : result.problems.map(formatProblem).join('\n');
  };
  it('reads one and remembers where it was', () => {
    const path = join(directory, 'config.yaml');
    writeFileSync(path, `\ufeff${file({})}`);
    expect(loadConfig({ path }, {})).toMatchObject({ ok: true, config: { path } });
  });
  it('says in one line why it could not', () => {
    const path = join(directory, 'none.yaml');
    expect(messageOf(path)).toBe(`config not found: ${path}`);
    expect(messageOf('no/such/config.yaml')).toBe(
      `config not found: ${join(process.cwd(), 'no/such/config.yaml')}`,
    );
    mkdirSync(join(directory, 'folder'));
    expect(messageOf(join(directory, 'folder'))).toBe(
      `config is a directory, not a file: ${join(directory, 'folder')}`,
    );
    writeFileSync(join(directory, 'latin1.yaml'), Buffer.from([0x61, 0xe4, 0x62]));
    expect(messageOf(join(directory, 'latin1.yaml'))).toContain('config is not valid UTF-8 text');
  });
  it('starts plugin paths of a text from its directory', () => {
    const text = file({ end: 'plugins: [{ module: ./a.js }, { module: b }]\n' });
    const result = loadConfig({ text, directory: '/etc/proxy' }, {});
    expect(result.ok && result.config.plugins.map(({ module }) => module)).toEqual(['/etc/proxy/a.js', 'b']);
  });
});

describe('a large file', () => {
  it('loads, as YAML and as JSON, with the same result', () => {
    const value = {
      providers: Array.from({ length: 20 }, (_, i) => ({
        id: `p${i}`,
        url: 'http://127.0.0.1:9/v1',
        key: `sk-${i}-abcdefgh`,
      })),
      upstreams: Array.from({ length: 2000 }, (_, i) => ({
        id: `u${i}`,
        provider: `p${i % 20}`,
        model: `real-${i}`,
        max_concurrency: 4,
      })),
      models: Array.from({ length: 10_000 }, (_, i) => ({
        name: `m${i}`,
        upstreams: [`u${i % 2000}`, `u${(i + 7) % 2000}`],
      })),
    };
    const loaded = [JSON.stringify(value, null, 1), stringify(value)].map((text) => {
      const start = performance.now();
      const { config } = load(text);
      process.stdout.write(
        `${text.startsWith('{') ? 'JSON' : 'YAML'}: ${Math.round(performance.now() - start)} ms\n`,
      );
      return config;
    });
    expect(loaded[0]?.models).toHaveLength(10_000);
    expect(loaded[0]?.models[9999]).toEqual(loaded[1]?.models[9999]);
  });
});

describe('any text', () => {
  it('gives a configuration or problems, and never throws or shows the key', () => {
    const text = file({
      p: 'key: "sk-SECRET-aaaa-1111-zzzz", headers: { x-a: b }, backoff: PT1M',
      u: 'patch: { a: [1] }',
    });
    const place = fc.integer({ min: 0, max: text.length });
    const piece = fc.oneof(
      fc.string({ maxLength: 6 }),
      fc.constantFrom(
        '\n',
        '\t',
        '"',
        "'",
        '{',
        '}',
        '[',
        ']',
        ': ',
        '- ',
        '&a ',
        '*a',
        '<<: ',
        '!',
        '|',
        '>',
        '#',
        '${',
        '---\n',
        '? ',
      ),
    );
    fc.assert(
      fc.property(place, fc.integer({ min: 0, max: 6 }), piece, (at, removed, inserted) => {
        const result = loadConfig({ text: text.slice(0, at) + inserted + text.slice(at + removed) }, {});
        const lines = [...(result.ok ? [] : result.problems), ...result.warnings].map(formatProblem);
        if (!result.ok) expect(result.problems.length).toBeGreaterThan(0);
        // A quote or colon that went missing can turn the key's text into a key of the file.
        expect(lines.join('\n')).not.toMatch(/SECRET-aaaa-1111|[\p{Cs}\u2028]/u);
      }),
      { numRuns: 400 },
    );
  });
});
