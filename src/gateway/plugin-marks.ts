import { ERROR_CLASSIFIER_METADATA } from '../contracts/error-class.js';
import { INTERCEPTOR_METADATA } from '../contracts/interceptor.js';
import { ROUTING_POLICY_METADATA } from '../contracts/routing-policy.js';
import type { RegistrationKind } from '../common/errors/plugin-setup-error.js';

/** The metadata by which each kind of thing that a plugin registers is found. */
export const MARKS: Readonly<Record<RegistrationKind, string>> = {
  interceptor: INTERCEPTOR_METADATA,
  policy: ROUTING_POLICY_METADATA,
  classifier: ERROR_CLASSIFIER_METADATA,
};

const DECORATORS: Readonly<Record<RegistrationKind, string>> = {
  interceptor: '@RegisterInterceptor',
  policy: '@RegisterRoutingPolicy',
  classifier: '@RegisterErrorClassifier',
};

/** What is wrong with what a class gave to its decorator; plugins in JavaScript may give anything. */
export function markFaults(kind: RegistrationKind, mark: unknown, className: string): readonly string[] {
  const where = `${DECORATORS[kind]} of the class ${className}`;
  if (kind === 'policy')
    return isName(mark) ? [] : [`${where}: the name must be a text that is not empty, of one line`];
  if (typeof mark !== 'object' || mark === null) return [`${where} needs options: at least { id: 'a-name' }`];
  const { id, order, config } = mark as { id?: unknown; order?: unknown; config?: unknown };
  const faults: string[] = [];
  if (!isName(id)) faults.push(`${where}: "id" must be a text that is not empty, of one line`);
  if (order !== undefined && !Number.isFinite(order))
    faults.push(`${where}: "order" must be a number, such as Order.shape (500)`);
  if (kind === 'interceptor' && config !== undefined && typeof config !== 'function')
    faults.push(`${where}: "config" must be a class`);
  return faults;
}

function isName(given: unknown): boolean {
  return typeof given === 'string' && given.trim() !== '' && !/\p{Cc}/u.test(given);
}
