import 'reflect-metadata';
import { describe, expect, it } from 'vitest';
import { loadConfig } from './load-config.js';
import { RootSection } from '../schema/root.section.js';
import { settingsOf, type SectionClass } from '../schema/setting.js';

/** In YAML, as a file might hold them where something else belongs. */
const ODD = [
  '9007199254740993',
  '[9007199254740993]',
  '[m]',
  '[[m]]',
  '{ a: 1 }',
  '[{ a: 1 }]',
  'true',
  'null',
  '""',
  '-1',
  '1.5',
  '.nan',
  '.inf',
  '2027-01-31',
  '"${NOT_SET}"',
  '!tag x',
  '0x10',
  '[]',
  '{}',
  '[null]',
  '{ __proto__: { a: 1 } }',
];

/** Every key of the file: the steps to its section, and its name. */
function keysOf(section: SectionClass, steps: readonly string[]): (readonly string[])[] {
  return [...settingsOf(section)].flatMap(([key, setting]) => {
    const here = [
      ...steps,
      setting.section === undefined || setting.rule.name === 'section' ? key : `${key}[]`,
    ];
    const inner = setting.section === undefined ? [] : keysOf(setting.section, here);
    return [[...steps, key], ...inner];
  });
}

/** A file whose one key holds this value, all around it as it should be as far as it matters. */
function fileWith(steps: readonly string[], value: string): string {
  const base: Record<string, string> = {
    providers: '{ id: p, url: "http://127.0.0.1:9/v1", ',
    upstreams: '{ id: u, provider: p, model: r, ',
    models: '{ name: m, upstreams: [u], ',
  };
  const [first = '', ...rest] = steps;
  const name = first.replace('[]', '');
  let inner = value;
  for (const step of rest.toReversed()) {
    const key = step.replace('[]', '');
    inner = step.endsWith('[]')
      ? `${key}: [{ ${inner} }]`
      : inner === value
        ? `${key}: ${value}`
        : `${key}: { ${inner} }`;
  }
  const written =
    rest.length === 0
      ? `${name}: ${value}`
      : first.endsWith('[]')
        ? `${name}: [${base[name] ?? '{ '}${inner} }]`
        : `${name}: { ${inner} }`;
  const others = Object.entries(base).flatMap(([list, start]) =>
    list === name ? [] : [`${list}: [${start}}]`],
  );
  return [...others, written].join('\n').replaceAll(', }', ' }');
}

describe('any value at any key', () => {
  const keys = keysOf(RootSection, []);
  it('is about every key of the file', () => {
    expect(keys.length).toBeGreaterThan(100);
    expect(fileWith(['providers[]', 'quota[]', 'window'], '1')).toContain('quota: [{ window: 1 }]');
  });

  it.each(keys.map((steps) => [steps.join('.'), steps] as const))('%s', (_, steps) => {
    for (const value of ODD) {
      const text = fileWith(steps, value);
      const result = loadConfig({ text }, {});
      // Whatever is wrong is told in words; nothing is thrown.
      for (const { message } of result.ok ? [] : result.problems)
        expect(message).not.toMatch(/undefined|\[object|TypeError/);
    }
  });
});
