import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../src/config/loader/config-problem.js';
import { loadConfig } from '../src/config/loader/load-config.js';
import { ERROR_CLASSES } from '../src/contracts/error-class.js';
import { ERROR_VOCABULARY } from '../src/upstreams/failures/error-vocabulary.js';

const page = readFileSync(new URL('../docs/keys-and-errors.md', import.meta.url), 'utf8');
const [before = '', words = ''] = page.split('\n## Words\n');

/** The list of one class as the page has to hold it. */
function listOf(name: (typeof ERROR_CLASSES)[number]): string {
  const {
    codes = [],
    codePrefixes = [],
    vagueCodes = [],
    messages = [],
    statuses = [],
  } = ERROR_VOCABULARY[name];
  const quoted = (list: readonly string[]) => list.map((word) => `\`${word}\``).join(', ');
  return [
    `### \`${name}\``,
    '',
    ...(statuses.length > 0 ? [`- status: ${statuses.join(', ')}`] : []),
    ...(codes.length > 0 ? [`- code or type: ${quoted(codes)}`] : []),
    ...(vagueCodes.length > 0 ? [`- code or type, after the message: ${quoted(vagueCodes)}`] : []),
    ...(codePrefixes.length > 0 ? [`- code or type that begins with: ${quoted(codePrefixes)}`] : []),
    ...(messages.length > 0
      ? [
          `- message: ${quoted(messages.map((phrase) => (typeof phrase === 'string' ? phrase : phrase.source)))}`,
        ]
      : []),
    '',
  ].join('\n');
}

describe('docs/keys-and-errors.md', () => {
  it('holds the words that the gateway knows, and no others', () => {
    const intro = words.slice(0, words.indexOf('### '));
    expect(words).toBe(`${intro}${ERROR_CLASSES.map(listOf).join('\n')}`);
  });

  it('has a row for each class, in their order, with its statuses', () => {
    const rows = [...before.matchAll(/^\| `([a-z_]+)` +\| ([^|]+?) +\|/gm)].map(([, name, by]) => [name, by]);
    expect(rows.map(([name]) => name)).toEqual([...ERROR_CLASSES]);
    for (const [name, by] of rows) {
      for (const status of ERROR_VOCABULARY[name as (typeof ERROR_CLASSES)[number]].statuses ?? [])
        expect(by).toContain(String(status));
    }
  });

  it('has an example that loads without a warning', () => {
    const [, yaml = ''] = /```yaml\n([\s\S]*?)```/.exec(page) ?? [];
    const result = loadConfig({ text: yaml }, {});
    expect(result.ok ? [] : result.problems.map(formatProblem)).toEqual([]);
    expect(result.warnings).toEqual([]);
  });
});
