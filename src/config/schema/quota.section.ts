import { amount, period, quotaListProblems, windowKind } from './quota-rules.js';
import type { Rule } from './rule.js';
import { Setting, type SettingOptions } from './setting.js';
import { sections } from './structure-rules.js';

/** One of a `quota:` list: how much may be used in each window of time. */
export class QuotaSection {
  @Setting({
    rule: amount,
    example: 2_000_000,
    description: 'Input and output tokens together; either this or `requests`.',
  })
  tokens?: number;

  @Setting({
    rule: amount,
    example: 200,
    description: 'Requests that reach the provider; either this or `tokens`.',
  })
  requests?: number;

  @Setting({
    rule: period,
    required: true,
    example: 'P1D',
    description:
      'Length of the window. PT1H, P1D, P7D and P1M are the hour, day, week from Monday and month of UTC; other lengths count from 1970-01-01.',
  })
  per?: string;

  @Setting({
    rule: windowKind,
    default: 'calendar',
    example: 'sliding',
    description:
      'calendar = starts anew when the window turns; sliding = what was used during the last `per`.',
  })
  window?: 'calendar' | 'sliding';
}

const items = sections(QuotaSection, 'quota', false);

/** A list of quotas. */
export const quotas: Rule = {
  ...items,
  check: (value) => [...items.check(value), ...(Array.isArray(value) ? quotaListProblems(value) : [])],
};

/** The key `quota` of whatever has quotas; `whose` ends its description. */
export function quotaSetting(whose: string): SettingOptions {
  return {
    rule: quotas,
    section: QuotaSection,
    nullProblem: 'has no value; list the quotas, write [] for none, or remove the key',
    default: [],
    description: `What may be used of ${whose} in each window of time.`,
  };
}
