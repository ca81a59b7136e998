import type { ErrorRules } from '../../config/gateway-config.js';
import type { ErrorClass } from '../../contracts/error-class.js';

/** What rests after an error, beside the ladder of the upstream. */
export type RestScope = 'key_here' | 'key' | 'upstream';

export interface Rest {
  readonly scope: RestScope;
  readonly ms: number;
}

/**
 * What rests after an error of this class, and for how long. Null: nothing, or (`server_error`) what the upstream's
 * ladder says. `askedMs` is what the provider asked for; `windowMs` the time until the longest quota window of the key
 * turns, null without one.
 */
export function restOf(
  name: ErrorClass,
  rules: ErrorRules,
  askedMs: number | undefined,
  windowMs: number | null,
): Rest | null {
  switch (name) {
    case 'rate_limited': {
      const { restMs, maxMs } = rules.rateLimited;
      return rest('key_here', Math.min(maxMs, askedMs ?? restMs));
    }
    case 'quota_exhausted': {
      const { restMs, maxMs } = rules.quotaExhausted;
      return rest('key', Math.min(maxMs, Math.max(windowMs ?? restMs, askedMs ?? 0)));
    }
    case 'unauthorized':
      return rest('key', rules.unauthorized.restMs);
    case 'model_gone':
      return rest('upstream', rules.modelGone.restMs);
    default:
      return null;
  }
}

function rest(scope: RestScope, ms: number): Rest | null {
  return ms > 0 ? { scope, ms } : null;
}
