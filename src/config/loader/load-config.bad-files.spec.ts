import 'reflect-metadata';
import { describe, expect, it } from 'vitest';
import { changed, GOOD, linesOf } from '../../../test/support/one-mistake.js';
import { loadConfig } from './load-config.js';

describe('loadConfig on a file with one mistake', () => {
  it('finds nothing in the file without it', () => {
    expect(loadConfig({ text: GOOD }, {})).toMatchObject({ ok: true, warnings: [] });
  });

  const key = 'key: sk-abcdefgh1234';
  const cases: [from: string, to: string, problem: string][] = [
    // keys
    [
      'model: real',
      'modle: real',
      'upstreams[0].modle (line 10): unknown key "modle" in upstreams[]; did you mean "model"?',
    ],
    [
      'model: real',
      'model: r\n    max-concurrency: 1',
      'upstreams[0].max-concurrency (line 11): unknown key "max-concurrency" in upstreams[]; did you mean "max_concurrency"?',
    ],
    [
      'model: real',
      'model: r\n    session_header: x',
      'upstreams[0].session_header (line 11): unknown key "session_header" in upstreams[]; it belongs to providers[]',
    ],
    [
      'server:',
      'host: x\nserver:',
      'host (line 1): unknown key "host" in the top level; it belongs to server',
    ],
    ['models:', 'model:', 'model (line 11): unknown key "model" in the top level; did you mean "models"?'],
    [
      'upstreams: [u1]',
      'upstreams: [{ upstream: u1, tier: 1.5 }]',
      'models[0].upstreams[0].tier (line 13): must be a whole number (lower = better), not 1.5',
    ],
    [
      'upstreams: [u1]',
      'upstreams: [{ upstream: u1, weight: -1 }]',
      'models[0].upstreams[0].weight (line 13): must be a number ≥ 0 (0 = last resort), not -1',
    ],
    [
      'upstreams: [u1]',
      'upstreams: [{ upstream: u2 }]',
      'models[0].upstreams[0].upstream (line 13): no upstream has the id "u2"; did you mean "u1"?',
    ],
    [
      'upstreams: [u1]',
      'upstreams: [{ tier: 1 }]',
      'models[0].upstreams[0].upstream (line 13): the required key "upstream" is missing, for example local-qwen',
    ],
    [
      'upstreams: [u1]',
      'upstreams: [u1, { upstream: u1 }]',
      'models[0].upstreams[1] (line 13): the upstream "u1" stands twice in this model (first as models[0].upstreams[0])',
    ],
    [
      'upstreams: [u1]',
      'upstreams: [{ upstream: u1, teir: 2 }]',
      'models[0].upstreams[0].teir (line 13): unknown key "teir" in models[].upstreams[]; did you mean "tier"?',
    ],
    [
      'name: m1',
      'name: m1\n    tier: 1',
      'models[0].tier (line 13): unknown key "tier" in models[]; it belongs to models[].upstreams[]',
    ],
    [
      'name: m1',
      'name: m1\n    order: wieghted',
      'models[0].order (line 13): no routing policy has the name "wieghted"; did you mean "weighted"? (known: listed, weighted, least_busy, fastest)',
    ],
    [
      'name: m1',
      'name: m1\n    max_attempts: 0',
      'models[0].max_attempts (line 13): must be a whole number ≥ 1, not 0',
    ],
    [
      'models:',
      'default_model: M1\nmodels:',
      'default_model (line 11): no model has the name "M1"; did you mean "m1"?',
    ],
    ['port: 8100', 'expose: all', 'server.expose (line 2): must be full, ids or none, not "all"'],
    ['id: p1', 'id: p/1', 'upstreams[0].provider'],
    ['server:', 'x:\nserver:', 'known here: server, slot_groups, providers, upstreams, models, '],
    [key, 'constructor: x', 'providers[0].constructor (line 6): unknown key "constructor"'],
    [key, '__proto__: { id: x }', 'providers[0].__proto__ (line 6): unknown key "__proto__"'],
    [
      '    model: real\n',
      '',
      'upstreams[0].model (line 8): the required key "model" is missing, for example gpt-4o',
    ],
    ['model: real', 'model:', 'upstreams[0].model (line 10): the required key "model" has no value'],
    [
      'models:',
      'upstreams: []\nmodels:',
      'upstreams (line 11): the key "upstreams" stands twice in one mapping; remove one',
    ],
    ['key: ', '1: a\n    "1": b\n    key: ', 'providers[0].1 (line 7): the key "1" stands twice'],
    // types
    ['model: real', 'model: 3.10', 'upstreams[0].model (line 10): must be a text, not 3.1; quote it'],
    ['model: real', 'model: true', 'upstreams[0].model (line 10): must be a text, not true; quote it'],
    ['model: real', 'model: ""', 'upstreams[0].model (line 10): must not be empty'],
    ['model: real', 'model: [real]', 'upstreams[0].model (line 10): must be a text, not a list'],
    [
      'upstreams: [u1]',
      'upstreams: u1',
      'models[0].upstreams (line 13): must be a list of upstream ids, not a text',
    ],
    ['upstreams: [u1]', 'upstreams: []', 'models[0].upstreams (line 13): must hold at least one'],
    [
      'upstreams: [u1]',
      'upstreams: [7]',
      'models[0].upstreams[0] (line 13): must be a text, not 7; quote it',
    ],
    [
      '  - name: m1\n    upstreams: [u1]\n',
      '  name: m1\n  upstreams: [u1]\n',
      'models (line 11): must be a list of models ("- …"), not a mapping',
    ],
    [
      '  - name: m1\n    upstreams: [u1]\n',
      '  - m1\n',
      'models[0] (line 12): must be a mapping (one model), not a text',
    ],
    ['  - name: m1\n    upstreams: [u1]\n', '  []\n', 'models (line 11): must hold at least one model'],
    [
      'models:\n  - name: m1\n    upstreams: [u1]\n',
      '',
      'models (line 1): the required key "models" is missing',
    ],
    ['  - name: m1\n    upstreams: [u1]\n', '', 'models (line 11): the required key "models" has no value'],
    ['server:\n  port: 8100', 'server: 8100', 'server (line 1): must be a mapping, not a number'],
    // references
    [
      'provider: p1',
      'provider: p2',
      'upstreams[0].provider (line 9): no provider has the id "p2"; did you mean "p1"?',
    ],
    [
      'upstreams: [u1]',
      'upstreams: [u1, u9]',
      'models[0].upstreams[1] (line 13): no upstream has the id "u9"; did you mean "u1"?',
    ],
    [
      'upstreams: [u1]',
      'upstreams:\n      - u1\n      - u1',
      'models[0].upstreams[1] (line 15): the upstream "u1" stands twice in this model (first as models[0].upstreams[0])',
    ],
    [
      'upstreams:\n',
      '  - { id: p1, url: "http://h" }\nupstreams:\n',
      'providers[1].id (line 7): "p1" is already the id of providers[0] (line 4)',
    ],
    [
      'models:',
      '  - { id: u1, provider: p1, model: r }\nmodels:',
      'upstreams[1].id (line 11): "u1" is already the id of upstreams[0] (line 8)',
    ],
    [
      '    upstreams: [u1]\n',
      '    upstreams: [u1]\n  - { name: m1, upstreams: [u1] }\n',
      'models[1].name (line 14): "m1" is already the name of models[0] (line 12)',
    ],
    // YAML
    ['upstreams:\n', 'upstreams: [ { ]\n', 'line 7: YAML syntax'],
    ['  port: 8100', '\tport: 8100', 'indent with spaces'],
    ['models:', '---\nmodels:', 'line 11: the file holds more than one YAML document'],
    [
      'model: real',
      'model: !preview',
      'a value that begins with "!" is a YAML tag, which is not supported here; quote it',
    ],
    ['model: real', 'model: !!binary aGk=', 'YAML tag'],
    ['model: real', 'model: !!timestamp 2020-01-01', 'YAML tag'],
    ['model: real', 'model: @real', 'line 10: a value begins with a character that YAML reserves; quote it'],
    [
      'model: real',
      'model: *real',
      'upstreams[0].model (line 10): no anchor (&name) of that name stands before this alias',
    ],
    [key, 'patch: &a { x: *a }', 'this alias stands inside what it refers to'],
    [key, '<<: sk', '"<<" takes a mapping or a list of mappings'],
    [key, '? [a]\n    : b', 'a key is empty or no plain text'],
  ];
  it.each(cases)('%j → %j', (from, to, problem) => {
    const lines = changed(from, to);
    expect(lines.filter((line) => line.includes(problem))).toHaveLength(1);
    expect(lines.join('\n')).not.toContain('undefined');
  });
});

describe('loadConfig on a file with many mistakes', () => {
  it('tells them all at once, in the order of the file', () => {
    const lines = linesOf(`providers:
  - { id: p1, url: "gopher://127.0.0.1" }
  - { id: p2, url: "http://127.0.0.1:9", key: "\${UNSET_ONE}" }
  - { url: "http://127.0.0.1:9" }
upstreams:
  - { id: u1, provider: p9, model: r }
  - { id: u2, provider: p1, model: r, max_concurrency: many }
models:
  - { name: m, upstreams: [u1, u7] }
`);
    expect(lines.map((line) => line.split(':', 1)[0])).toEqual([
      'providers[0].url (line 2)',
      'providers[1].key (line 3)',
      'providers[2].id (line 4)',
      'upstreams[0].provider (line 6)',
      'upstreams[1].max_concurrency (line 7)',
      'models[0].upstreams[1] (line 9)',
    ]);
  });

  it('does not blame every upstream for a missing list of providers', () => {
    const lines = linesOf(
      'upstreams: [{ id: u, provider: p, model: r }]\nmodels: [{ name: m, upstreams: [u] }]\n',
    );
    expect(lines).toEqual(['providers (line 1): the required key "providers" is missing']);
  });

  it.each(['', '# only a comment\n', 'null', '[]', 'text', '---\n'])('refuses %j', (text) => {
    expect(linesOf(text)).toHaveLength(1);
    expect(linesOf(text)[0]).toContain('it needs providers, upstreams and models');
  });
});

describe('secrets', () => {
  const secret = 'sk-SECRET-aaaa-1111-zzzz';
  it.each([
    ['key: sk-abcdefgh1234', `key: "${secret}\\n${secret}"`],
    ['key: sk-abcdefgh1234', `key: [${secret}]`],
    ['key: sk-abcdefgh1234', `headers: { x-token: "${secret}\\0" }`],
    ['key: sk-abcdefgh1234', `headers: ${secret}`],
    ['key: sk-abcdefgh1234', `key: "${secret}" ${secret}`],
    ['key: sk-abcdefgh1234', `key: !${secret}`],
    ['key: sk-abcdefgh1234', `key: *${secret}`],
    ['key: sk-abcdefgh1234', `key: "\${${secret}}"`],
    ['key: sk-abcdefgh1234', `key: "\\x${secret}"`],
    ['key: sk-abcdefgh1234', `key: |${secret}\n      x`],
    ['"http://127.0.0.1:9/v1"', `"http://user:${secret}@host/v1"`],
    ['"http://127.0.0.1:9/v1"', `"https://host/v1?key=${secret}"`],
    ['"http://127.0.0.1:9/v1"', secret],
    ['"http://127.0.0.1:9/v1"', '"http://h/?${HIDDEN}"'],
  ])('are in no problem: %j → %j', (from, to) => {
    const lines = linesOf(GOOD.replace(from, to), { HIDDEN: secret });
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.join('\n')).not.toContain('SECRET');
  });
});
