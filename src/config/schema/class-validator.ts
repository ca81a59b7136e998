// Trap: the package's entry also loads every rule it knows, with the telephone numbers of the world, which the start
// would pay for (docs/performance.md). What plugins register through that entry is seen here: the storage is global.
import type { ValidationError, ValidatorOptions } from 'class-validator';
import { Validator } from 'class-validator/cjs/validation/Validator.js';

/** The parts of class-validator that this service uses, without the rest of it. */
export { IsDefined } from 'class-validator/cjs/decorator/common/IsDefined.js';
export { IsOptional } from 'class-validator/cjs/decorator/common/IsOptional.js';
export { ValidateBy } from 'class-validator/cjs/decorator/common/ValidateBy.js';

export function validateSync(object: object, options: ValidatorOptions): ValidationError[] {
  return new Validator().validateSync(object, options);
}
