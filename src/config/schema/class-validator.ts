import { createRequire } from 'node:module';
import type * as ClassValidator from 'class-validator';

// Trap: the package's entry also loads every rule it knows, with the telephone numbers of the world, which the start
// would pay for (docs/performance.md). What plugins register through that entry is seen here: the storage is one.
const require = createRequire(import.meta.url);
const part = (path: string): typeof ClassValidator =>
  require(`class-validator/cjs/${path}.js`) as typeof ClassValidator;

/** The parts of class-validator that this service uses, without the rest of it. */
export const { IsDefined } = part('decorator/common/IsDefined');
export const { IsOptional } = part('decorator/common/IsOptional');
export const { ValidateBy } = part('decorator/common/ValidateBy');

const { Validator } = part('validation/Validator');

export function validateSync(
  object: object,
  options: ClassValidator.ValidatorOptions,
): ClassValidator.ValidationError[] {
  return new Validator().validateSync(object, options);
}
