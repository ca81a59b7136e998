import { validateSync } from './class-validator.js';

/** The keys of a section whose rule does not hold; a required key that is absent is one of them. */
export function failedKeys(section: object): string[] {
  return validateSync(section, { forbidUnknownValues: false, stopAtFirstError: true }).map(
    ({ property }) => property,
  );
}
