import { validateSync } from './class-validator.js';
import { type SectionClass, settingsOf } from './setting.js';

const NONE: readonly string[] = [];

/** The keys of a section whose rule does not hold; a required key that is absent is one of them. */
export function failedKeys(section: object, Section: SectionClass): readonly string[] {
  return holds(section as Record<string, unknown>, Section) ? NONE : failedByValidator(section);
}

/**
 * The rules by themselves, without class-validator's tables: for ten thousand consumers those are most of the start. An
 * absent value is looked at where it is required, else never.
 */
function holds(section: Readonly<Record<string, unknown>>, Section: SectionClass): boolean {
  for (const [key, { required, rule }] of settingsOf(Section)) {
    const value = section[key] ?? null;
    if (value === null ? required === true : rule.check(value).length > 0) return false;
  }
  return true;
}

/** @internal the same by class-validator, in the order in which it finds them */
export function failedByValidator(section: object): string[] {
  return validateSync(section, { forbidUnknownValues: false, stopAtFirstError: true }).map(
    ({ property }) => property,
  );
}
