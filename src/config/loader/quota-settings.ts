import { parseDuration } from '../../common/time/duration.js';
import type { QuotaConfig } from '../gateway-config.js';
import type { QuotaSection } from '../schema/quota.section.js';

/** The quotas of a list in which no problem was found. */
export function quotasOf(list: readonly QuotaSection[] | undefined): readonly QuotaConfig[] {
  return (list ?? []).map(({ tokens, requests, per, window }) => {
    const text = per?.trim() ?? '';
    const limit = tokens ?? requests;
    const ms = parseDuration(text);
    if (limit === undefined || ms === null)
      throw new TypeError('a configuration with problems must not be built');
    return {
      unit: tokens === undefined ? 'requests' : 'tokens',
      limit,
      per: { text, ms },
      window: window ?? 'calendar',
    };
  });
}
