import { RootSection } from '../schema/root.section.js';
import { settingsOf, type SectionClass, type SettingOptions } from '../schema/setting.js';
import { failedKeys } from '../schema/validate-section.js';
import { formatPath, shownKey, type ConfigPath } from './config-path.js';
import type { Findings } from './findings.js';
import { nearest } from './nearest.js';
import { isPlainObject, setOwn, type PlainObject } from './plain-object.js';
import { substitute, type Environment } from './substitution.js';

/**
 * Turns one mapping of the file into an instance of its section class that holds valid values only; everything else
 * is reported. Lives for one run of the loader.
 */
export class SectionReader {
  /** Values whose substitution failed: what a rule says about the rest of them would mislead. */
  readonly #broken = new Set<string>();

  constructor(
    private readonly findings: Findings,
    private readonly environment: Environment,
    /** What one line of another file is, whose number is the first step of each path; null in the file itself. */
    private readonly line: string | null = null,
  ) {}

  read<T extends object>(Section: new () => T, value: PlainObject, path: ConfigPath): T {
    const section = new Section();
    const settings = settingsOf(Section);
    for (const key of Object.keys(value)) {
      const setting = settings.get(key);
      if (setting === undefined) this.#unknownKey(Section, key, path);
      else if (value[key] === null && setting.nullProblem !== undefined)
        this.findings.problem([...path, key], setting.nullProblem);
      else if (value[key] !== null || setting.nullMatters === true) {
        const given =
          setting.substituted === true ? this.#substituted(value[key], [...path, key]) : value[key];
        for (const secret of setting.rule.secretsIn?.(given) ?? []) this.findings.secrets.add(secret);
        setOwn(section as PlainObject, key, given);
      }
    }
    this.#validate(section, Section, value, path);
    this.#readInner(section as PlainObject, settings, path);
    return section;
  }

  /** Mappings where a section belongs become instances of it; what is no mapping was reported by the rule. */
  #readInner(section: PlainObject, settings: ReadonlyMap<string, SettingOptions>, path: ConfigPath): void {
    for (const [key, { section: Inner }] of settings) {
      const value = section[key];
      if (Inner === undefined || value === undefined || value === null) continue;
      if (isPlainObject(value)) section[key] = this.read(Inner, value, [...path, key]);
      else if (Array.isArray(value)) {
        section[key] = value.map((item: unknown, i) =>
          isPlainObject(item) ? this.read(Inner, item, [...path, key, i]) : item,
        );
      }
    }
  }

  // class-validator finds a class's rules through `object.constructor`, which a key of the file could replace: so
  // unknown keys never reach the instance, and its own whitelist has nothing left to do.
  #validate(section: object, Section: SectionClass, raw: PlainObject, path: ConfigPath): void {
    for (const property of failedKeys(section, Section)) {
      const setting = settingsOf(Section).get(property);
      if (setting === undefined) continue;
      const here = [...path, property];
      const value = (section as PlainObject)[property];
      if (value === undefined || value === null) {
        const empty = Object.hasOwn(raw, property) ? 'has no value' : 'is missing';
        this.findings.problem(here, `the required key "${property}" ${empty}${exampleOf(setting)}`);
      } else {
        this.#explain(setting, value, here);
      }
      // Lists are kept: those of their items that are valid are read on, so that one run tells everything. Tolerated
      // values are kept too: an unknown think_tags means off, not "as the provider".
      const isList = Array.isArray(value) && setting.rule.schema['type'] === 'array';
      if (!isList && setting.tolerated !== true) delete (section as PlainObject)[property];
    }
  }

  #explain(setting: SettingOptions, value: unknown, path: ConfigPath): void {
    for (const { at, message } of setting.rule.check(value)) {
      const here = [...path, ...at];
      if (this.#broken.has(formatPath(here))) continue;
      if (setting.tolerated === true) this.findings.warning(here, message);
      else this.findings.problem(here, message);
    }
  }

  #substituted(value: unknown, path: ConfigPath): unknown {
    if (typeof value === 'string') {
      const { text, problems } = substitute(value, this.environment);
      for (const message of problems) this.findings.problem(path, message);
      if (problems.length > 0) this.#broken.add(formatPath(path));
      return text;
    }
    // In a list of texts and mappings each mapping is a section, whose own keys say what is replaced in it.
    if (Array.isArray(value)) {
      return value.map((item: unknown, i) =>
        typeof item === 'string' ? this.#substituted(item, [...path, i]) : item,
      );
    }
    if (!isPlainObject(value)) return value;
    const result: PlainObject = {};
    for (const name of Object.keys(value)) {
      const member = value[name];
      setOwn(result, name, typeof member === 'string' ? this.#substituted(member, [...path, name]) : member);
    }
    return result;
  }

  #unknownKey(Section: SectionClass, key: string, path: ConfigPath): void {
    const known = [...settingsOf(Section).keys()];
    const inside = this.line === null ? path : path.slice(1);
    const place =
      inside.length === 0
        ? (this.line ?? 'the top level')
        : formatPath(inside.map((step) => (typeof step === 'number' ? 0 : step)));
    const where = place.replaceAll('[0]', '[]');
    const similar = nearest(key, known);
    const elsewhere = similar?.close === true ? [] : placesOf(key);
    let hint = similar === null ? '' : `; did you mean "${similar.word}"?`;
    if (elsewhere.length > 0) hint = `; it belongs to ${elsewhere.join(' or ')}`;
    else if (similar?.close !== true) hint += ` (known here: ${known.join(', ')})`;
    this.findings.problem([...path, key], `unknown key "${shownKey(key)}" in ${where}${hint}`);
  }
}

function exampleOf({ example }: SettingOptions): string {
  if (typeof example === 'string') return `, for example ${example}`;
  return Array.isArray(example) ? `, for example [${example.join(', ')}]` : '';
}

/** The sections that know a key: `server`, `providers[]`, `models[].upstreams[]`, or `the top level`. */
function placesOf(key: string): string[] {
  return [
    ...(settingsOf(RootSection).has(key) ? ['the top level'] : []),
    ...placesInside(RootSection, '', key, new Set()),
  ];
}

function placesInside(
  section: SectionClass,
  prefix: string,
  key: string,
  seen: Set<SectionClass>,
): readonly string[] {
  return [...settingsOf(section)].flatMap(([name, { section: inner, rule }]) => {
    if (inner === undefined || seen.has(inner)) return [];
    seen.add(inner);
    const place = `${prefix}${name}${rule.name === 'section' ? '' : '[]'}`;
    return [...(settingsOf(inner).has(key) ? [place] : []), ...placesInside(inner, `${place}.`, key, seen)];
  });
}
