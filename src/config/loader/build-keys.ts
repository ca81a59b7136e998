import { parseDuration } from '../../common/time/duration.js';
import type { ErrorRules, KeyConfig } from '../gateway-config.js';
import { ErrorsSection } from '../schema/errors.section.js';
import { parseExpiry } from '../../common/time/expiry.js';
import type { ProviderSection } from '../schema/provider.section.js';
import { listedKeys } from './check-keys.js';
import { quotasOf } from './quota-settings.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

export const ERROR_DEFAULTS: ErrorRules = {
  rateLimited: { restMs: 30 * SECOND, maxMs: 60 * MINUTE },
  quotaExhausted: { restMs: 30 * MINUTE, maxMs: 24 * 60 * MINUTE },
  unauthorized: { restMs: 10 * MINUTE },
  modelGone: { restMs: 10 * MINUTE },
  serverError: { retries: 1, restMs: SECOND, maxMs: 5 * MINUTE },
};

/** The pool of a provider. Null: it has one key, or none, and failures are not told apart: then there is no pool. */
export function buildKeys(section: ProviderSection): readonly KeyConfig[] | null {
  if (section.keys === undefined) {
    return buildErrorRules(section) === null ? null : [soleKey(section.key?.trim() ?? '')];
  }
  // An empty list is a choice: no authorization. A list whose keys are all empty is not.
  if (section.keys.length === 0) return [soleKey('')];
  return listedKeys(section.keys)
    .filter(({ value }) => value !== '')
    .map(({ id, value, section: long }) => ({
      id,
      value,
      expiresAtMs: long?.expires === undefined ? null : parseExpiry(long.expires.trim()),
      disabled: long?.disabled ?? false,
      quota: quotasOf(long?.quota),
    }));
}

function soleKey(value: string): KeyConfig {
  return { id: '#1', value, expiresAtMs: null, disabled: false, quota: [] };
}

/** Null: `simple`. */
export function buildErrorRules({ errors, keys }: ProviderSection): ErrorRules | null {
  if (errors === 'simple' || (errors === undefined && keys === undefined)) return null;
  if (!(errors instanceof ErrorsSection)) return ERROR_DEFAULTS;
  const { rate_limited, quota_exhausted, unauthorized, model_gone, server_error } = errors;
  return {
    rateLimited: bounded(rate_limited, ERROR_DEFAULTS.rateLimited),
    quotaExhausted: bounded(quota_exhausted, ERROR_DEFAULTS.quotaExhausted),
    unauthorized: { restMs: msOf(unauthorized?.rest) ?? ERROR_DEFAULTS.unauthorized.restMs },
    modelGone: { restMs: msOf(model_gone?.rest) ?? ERROR_DEFAULTS.modelGone.restMs },
    serverError: {
      ...bounded(server_error, ERROR_DEFAULTS.serverError),
      retries: server_error?.retries ?? ERROR_DEFAULTS.serverError.retries,
    },
  };
}

interface Bounds {
  readonly restMs: number;
  readonly maxMs: number;
}

/** A rest that is longer than the default bound lifts it; a bound that is written holds for the rest too. */
function bounded(given: { rest?: unknown; max?: unknown } | undefined, byDefault: Bounds): Bounds {
  const restMs = msOf(given?.rest) ?? byDefault.restMs;
  const maxMs = msOf(given?.max) ?? Math.max(byDefault.maxMs, restMs);
  return { restMs: Math.min(restMs, maxMs), maxMs };
}

function msOf(written: unknown): number | null {
  return typeof written === 'string' ? parseDuration(written.trim()) : null;
}
