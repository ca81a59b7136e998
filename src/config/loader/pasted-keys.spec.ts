import 'reflect-metadata';
import { describe, expect, it } from 'vitest';
import { RootSection } from '../schema/root.section.js';
import { type SectionClass, settingsOf } from '../schema/setting.js';
import { formatProblem } from './config-problem.js';
import { loadConfig } from './load-config.js';

interface Place {
  readonly steps: readonly string[];
  readonly list: boolean;
}

/** Every key of the file, with what stands around it; `[]` is the first item of a list. */
function placesIn(section: SectionClass, before: readonly string[], seen: readonly SectionClass[]): Place[] {
  return [...settingsOf(section)].flatMap(([name, { rule, section: inner }]) => {
    const steps = [...before, name];
    const own = { steps, list: rule.schema['type'] === 'array' };
    if (inner === undefined || seen.includes(inner)) return [own];
    return [own, ...placesIn(inner, own.list ? [...steps, '[]'] : steps, [...seen, inner])];
  });
}

/** A file with this value at that place, and little else. */
function fileWith(steps: readonly string[], value: unknown, key: string): string {
  const root: Record<string, unknown> = {
    providers: [{ id: 'p', url: 'http://h', key }],
    upstreams: [{ id: 'u', provider: 'p', model: 'r' }],
    models: [{ name: 'm', upstreams: ['u'] }],
  };
  let at = root;
  for (const [i, step] of steps.entries()) {
    const inList = steps[i + 1] === '[]';
    const own = step === '[]' ? 0 : step;
    const container = at as Record<string | number, unknown>;
    if (i === steps.length - 1) container[own] = value;
    else {
      const present = container[own];
      const fits = typeof present === 'object' && present !== null;
      if (!fits) container[own] = inList ? [] : {};
      if (inList && typeof (container[own] as unknown[])[0] !== 'object')
        (container[own] as unknown[])[0] = {};
      at = container[own] as Record<string, unknown>;
    }
  }
  return JSON.stringify(root);
}

function linesOf(text: string): string[] {
  const result = loadConfig({ text, directory: '/nowhere' }, {});
  return [...(result.ok ? [] : result.problems), ...result.warnings].map(formatProblem);
}

const PLACES = placesIn(RootSection, [], []);
const LOOKS_LIKE_ONE = 'sk-proj-AbC123dEf456GhI789jKl';
const LOOKS_LIKE_NONE = 'correct horse battery';

describe('a key that was pasted into the wrong place', () => {
  it('is tried in all of them', () => {
    expect(PLACES.length).toBeGreaterThan(150);
  });

  it.each([
    ['looks like one', LOOKS_LIKE_ONE, 'http://h', LOOKS_LIKE_ONE],
    ['stands where it belongs as well', LOOKS_LIKE_NONE, LOOKS_LIKE_NONE, 'horse battery'],
    ['stands there between other words', `a ${LOOKS_LIKE_NONE}.`, LOOKS_LIKE_NONE, 'horse battery'],
    ['is taken for a variable', '${gsk_AbC123dEf456GhI789jKl}', 'none', 'AbC123dEf456GhI789jKl'],
  ])('is shown nowhere, where it %s', (_, pasted, key, hidden) => {
    let told = 0;
    for (const { steps, list } of PLACES) {
      for (const value of list ? [pasted, [pasted]] : [pasted, { [pasted]: pasted }]) {
        const lines = linesOf(fileWith(steps, value, key));
        told += lines.length;
        for (const line of lines) expect(line, steps.join('.')).not.toContain(hidden);
      }
    }
    expect(told).toBeGreaterThan(PLACES.length);
  });

  it('names what is wrong, and so much of the value that it can be found', () => {
    expect(linesOf(fileWith(['providers', '[]', 'auth'], LOOKS_LIKE_ONE, 'k'))).toEqual([
      'providers[0].auth (line 1): "sk-…9jKl" is no place for a key; write one of bearer, x-api-key, api-key, x-goog-api-key, none',
    ]);
    expect(linesOf(fileWith(['providers', '[]', 'key'], '${gsk_AbC123dEf456GhI789jKl}', 'k'))).toEqual([
      'providers[0].key (line 1): the environment variable gsk…9jKl is not set; set it, or write ${gsk…9jKl:-default}',
    ]);
  });

  it.each([
    ['a password of a proxy', ['providers', '[]', 'proxy'], 'http://me:horse%20battery@x:1/'],
    ['a password of Redis', ['state', 'url'], 'redis://:horse%20battery@x/'],
    ['a header', ['providers', '[]', 'headers'], { 'X-Api-Key': 'horse battery' }],
    ['a key of a list', ['providers', '[]', 'keys'], ['horse battery']],
    ['a token of the service', ['server', 'admin_token'], 'horse battery'],
  ])('is known from %s', (_, steps, value) => {
    const text = fileWith(steps, value, '');
    const file = JSON.parse(text) as Record<string, unknown>;
    expect(linesOf(JSON.stringify({ ...file, default_model: 'horse battery' })).join('\n')).toContain(
      'no model has the name "hor…tery"',
    );
  });

  it('is not looked for in other values: those are quoted whole', () => {
    const lines = linesOf(fileWith(['default_model'], 'claude-3-5-sonnet-20241022', 'not-needed'));
    expect(lines.join('\n')).toContain('no model has the name "claude-3-5-sonnet-20241022"');
  });

  it('is not taken for a file, where it is the text of one', () => {
    const pem = '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----';
    const tls = { cert: pem, key: pem };
    expect(linesOf(fileWith(['providers', '[]', 'tls'], tls, ''))).toEqual([
      'providers[0].tls.cert (line 1): must be the path of a file in PEM form, not its text',
      'providers[0].tls.key (line 1): must be the path of a file in PEM form, not its text',
    ]);
  });
});
