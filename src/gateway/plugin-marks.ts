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
