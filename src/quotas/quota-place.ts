import type { QuotaConfig } from '../config/gateway-config.js';
import { isOneMonth } from './window/calendar.js';

export type QuotaScope = 'provider' | 'key' | 'upstream' | 'entry' | 'consumer';

/** Whose a quota is. */
export interface QuotaPlace {
  readonly scope: QuotaScope;
  /** `[provider, key]` of a key, `[model, upstream]` of an entry, else one id. */
  readonly id: readonly string[];
}

/** What a quota is known by: as long as it stays the same, what was used stays counted, whatever the limit. */
export function quotaKey({ scope, id }: QuotaPlace, { unit, per, window }: QuotaConfig): string {
  const length = isOneMonth(per.text) ? 'P1M' : per.ms;
  return JSON.stringify([scope, ...id, unit, length, window]);
}
