import { describe, expect, it } from 'vitest';
import { ERROR_DEFAULTS } from '../../config/loader/build-keys.js';
import { restOf } from './rest-of.js';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

describe('restOf', () => {
  it.each([
    ['rate_limited', undefined, null, 'key_here', 30_000],
    ['rate_limited', 7000, null, 'key_here', 7000],
    ['rate_limited', 2 * 60 * MINUTE, null, 'key_here', 60 * MINUTE],
    ['quota_exhausted', undefined, null, 'key', 30 * MINUTE],
    ['quota_exhausted', 1000, null, 'key', 30 * MINUTE],
    ['quota_exhausted', 40 * MINUTE, null, 'key', 40 * MINUTE],
    ['quota_exhausted', undefined, 5 * MINUTE, 'key', 5 * MINUTE],
    ['quota_exhausted', 40 * MINUTE, 5 * MINUTE, 'key', 40 * MINUTE],
    ['quota_exhausted', undefined, 20 * DAY, 'key', DAY],
    ['unauthorized', 1000, null, 'key', 10 * MINUTE],
    ['model_gone', 1000, null, 'upstream', 10 * MINUTE],
  ] as const)('%s, asked %s, window %s: %s %d', (name, asked, windowMs, scope, ms) => {
    expect(restOf(name, ERROR_DEFAULTS, asked, windowMs)).toEqual({ scope, ms });
  });

  it.each(['server_error', 'busy', 'bad_request', 'context_length'] as const)(
    '%s rests nothing by itself',
    (name) => {
      expect(restOf(name, ERROR_DEFAULTS, 1000, null)).toBeNull();
    },
  );

  it('a rest of nothing is none', () => {
    expect(restOf('rate_limited', ERROR_DEFAULTS, 0, null)).toBeNull();
    expect(
      restOf('unauthorized', { ...ERROR_DEFAULTS, unauthorized: { restMs: 0 } }, undefined, null),
    ).toBeNull();
  });
});
