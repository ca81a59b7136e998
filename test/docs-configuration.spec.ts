import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../src/config/loader/config-problem.js';
import { readSource } from '../src/config/loader/config-source.js';
import { loadConfig } from '../src/config/loader/load-config.js';
import { configJsonSchemaText } from '../src/config/schema/json-schema.js';
import { QuotaSection } from '../src/config/schema/quota.section.js';
import { RootSection } from '../src/config/schema/root.section.js';
import { settingsOf, type SectionClass, type SettingOptions } from '../src/config/schema/setting.js';
import { uncommented } from './support/example-file.js';

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
const environment = { ROUTER_API_KEY: 'sk-router-abcdefgh' };
const page = read('docs/configuration.md');
const example = read('config/config.example.yaml');

function keysOf(section: SectionClass, prefix: string): [string, SettingOptions][] {
  return [...settingsOf(section)].flatMap(([key, setting]): [string, SettingOptions][] => {
    const path = `${prefix}${key}`;
    if (setting.section === undefined) return [[path, setting]];
    if (setting.section === QuotaSection) return [[path, setting]];
    const inner = setting.rule.name === 'section' ? `${path}.` : `${path}[].`;
    return [[path, setting], ...keysOf(setting.section, inner)];
  });
}
// A quota is the same wherever it stands: its keys are told once.
const keys = [...keysOf(RootSection, ''), ...keysOf(QuotaSection, 'quota[].')];

/** Every path in a value, with `[]` for the items of a list. */
function pathsOf(value: unknown, path: string): string[] {
  if (Array.isArray(value)) return value.flatMap((item: unknown) => pathsOf(item, `${path}[]`));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => {
    const here = path === '' ? key : `${path}.${key}`;
    return [here, ...pathsOf(member, here)];
  });
}

/** Blocks that are whole files. */
function examplesOf(text: string): string[] {
  return [...text.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, block]) => block ?? '');
}

/** Rows of tables about keys of the file: path → default. */
const rows = new Map(
  [...page.matchAll(/^\| `([a-z][a-z0-9_[\].]*)` +\| ([^|]+?) +\|/gm)].map(([, path, byDefault]) => [
    path,
    byDefault,
  ]),
);

describe('docs/configuration.md', () => {
  it('names every key of the file, and no other', () => {
    expect(new Set(rows.keys())).toEqual(new Set(keys.map(([path]) => path)));
  });

  it.each(keys.filter(([, setting]) => setting.required === true))('says that %s is required', (path) => {
    expect(rows.get(path)).toBe('required');
  });

  it.each(keys.filter(([, setting]) => setting.default !== undefined))(
    'gives the default of %s',
    (path, setting) => {
      const value = setting.default;
      const shown = value === '' ? "''" : typeof value === 'string' ? value : JSON.stringify(value);
      expect(rows.get(path)).toBe(`\`${shown}\``);
    },
  );

  const blocks = examplesOf(page);
  it('has examples', () => {
    expect(blocks.length).toBeGreaterThan(3);
  });
  it.each([...blocks, ...examplesOf(read('docs/recovery.md'))])(
    'has an example that loads without a warning: %#',
    (block) => {
      const result = loadConfig({ text: block }, environment);
      expect(result.ok ? [] : result.problems.map(formatProblem)).toEqual([]);
      expect(result.warnings).toEqual([]);
    },
  );
});

describe('docs/quotas.md', () => {
  const quotasPage = read('docs/quotas.md');
  const blocks = [...quotasPage.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, block]) => block ?? '');

  it.each(blocks)('has an example that loads without a warning: %#', (block) => {
    const result = loadConfig({ text: block }, environment);
    expect(result.ok ? [] : result.problems.map(formatProblem)).toEqual([]);
    expect(result.warnings).toEqual([]);
  });

  it('names every place of a quota', () => {
    const places = keys.map(([path]) => path).filter((path) => path.endsWith('].quota'));
    expect(places.length).toBeGreaterThan(3);
    for (const place of places) expect(quotasPage).toContain(`| \`${place}\``);
  });
});

describe('config/config.example.yaml', () => {
  it('points editors to the schema', () => {
    expect(example.split('\n', 1)[0]).toBe('# yaml-language-server: $schema=./config.schema.json');
  });
  it.each(keys)('holds %s', (path) => {
    const paths = pathsOf(readSource(uncommented(example)).value, '');
    expect(paths.some((found) => found === path || found.endsWith(`.${path}`))).toBe(true);
  });
});

describe('config/config.schema.json', () => {
  it('is what the classes generate', () => {
    expect(read('config/config.schema.json')).toBe(configJsonSchemaText());
  });
});
