import { parseDuration } from '../../common/time/duration.js';
import { isPlainObject, type PlainObject } from '../loader/plain-object.js';
import { show, simpleRule, type Rule, type RuleFinding } from './rule.js';
import { durationPattern } from './tolerant-rules.js';

/** How much of something may be used. */
export const amount: Rule = simpleRule('amount', { type: 'integer', minimum: 1 }, (value) => {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1) return null;
  const quoted = typeof value === 'string' && /^\d+$/.test(value) ? '; remove the quotes' : '';
  return `must be a whole number ≥ 1, not ${show(value)}${quoted}`;
});

export const period: Rule = simpleRule('period', { type: 'string', pattern: durationPattern }, (value) => {
  const ms = typeof value === 'string' ? parseDuration(value.trim()) : null;
  if (ms === null) return `must be a duration such as PT1M, PT1H, P1D, P7D or P1M, not ${show(value)}`;
  return ms === 0 ? `must be longer than ${show(value)}` : null;
});

const KINDS: readonly unknown[] = ['calendar', 'sliding'];

export const windowKind: Rule = simpleRule('windowKind', { enum: KINDS }, (value) =>
  KINDS.includes(value) ? null : `must be calendar or sliding, not ${show(value)}`,
);

/** What is wrong with a list of quotas beyond its items' own keys: each needs one unit, and none may be said twice. */
export function quotaListProblems(items: readonly unknown[]): RuleFinding[] {
  const firstAt = new Map<string, number>();
  return items.flatMap((item, i): RuleFinding[] => {
    if (!isPlainObject(item)) return [];
    const [tokens, requests] = [isGiven(item, 'tokens'), isGiven(item, 'requests')];
    if (tokens && requests)
      return [{ at: [i], message: 'has tokens and requests; write a quota for each of them' }];
    if (!tokens && !requests)
      return [{ at: [i], message: 'needs tokens or requests, for example { requests: 200, per: P1D }' }];
    const same = sameness(item, tokens ? 'tokens' : 'requests');
    const first = same === null ? undefined : firstAt.get(same);
    if (first !== undefined)
      return [{ at: [i], message: `counts the same as [${first}] of this list; remove one of them` }];
    if (same !== null) firstAt.set(same, i);
    return [];
  });
}

function isGiven(item: PlainObject, key: string): boolean {
  return Object.hasOwn(item, key) && item[key] !== null;
}

/** Null where the item says something wrong anyway. `P1M` is a month of the calendar, `P30D` is not. */
function sameness({ per, window }: PlainObject, unit: string): string | null {
  const text = typeof per === 'string' ? per.trim() : '';
  const ms = parseDuration(text);
  return ms === null
    ? null
    : JSON.stringify([unit, ms, typeof window === 'string' ? window : 'calendar', /^P0*1M$/.test(text)]);
}
