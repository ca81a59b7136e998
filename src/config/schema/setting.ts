import { IsDefined, IsOptional, ValidateBy } from './class-validator.js';
import type { Rule } from './rule.js';

export interface SettingOptions {
  readonly rule: Rule;
  /** For editors and the documentation. */
  readonly description: string;
  readonly required?: boolean;
  /** What holds when the key is absent; shown to editors. */
  readonly default?: unknown;
  readonly example?: unknown;
  /** A value that breaks the rule is a warning, and the key counts as absent. */
  readonly tolerated?: boolean;
  /** `${VAR}` is replaced in the value, or in the values of the mapping. */
  readonly substituted?: boolean;
  /** An explicit `null` means something else than an absent key. */
  readonly nullMatters?: boolean;
  /** An explicit `null` is a problem, told in these words: absent and empty mean opposite things here. */
  readonly nullProblem?: string;
  /** The value is a mapping of, or a list of mappings of, this class. */
  readonly section?: SectionClass;
}

export type SectionClass = new () => object;

const settings = new Map<object, Map<string, SettingOptions>>();

/**
 * Declares a key of a section: registers its rule with class-validator and keeps the rest for the reader and for the
 * JSON Schema, so that all three are one text.
 */
export function Setting(options: SettingOptions): PropertyDecorator {
  return (prototype, property) => {
    const key = String(property);
    const own = settings.get(prototype.constructor) ?? new Map<string, SettingOptions>();
    settings.set(prototype.constructor, own.set(key, options));
    const { rule } = options;
    const validator = { validate: (value: unknown): boolean => rule.check(value).length === 0 };
    if (options.required === true) IsDefined()(prototype, key);
    else IsOptional()(prototype, key);
    ValidateBy({ name: rule.name, validator })(prototype, key);
  };
}

/** The keys of a section, in the order of its class. */
export function settingsOf(section: SectionClass): ReadonlyMap<string, SettingOptions> {
  return settings.get(section) ?? new Map<string, SettingOptions>();
}
