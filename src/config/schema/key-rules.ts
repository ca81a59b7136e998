import { parseExpiry } from '../../common/time/expiry.js';
import { isPlainObject } from '../loader/plain-object.js';
import { kindOf, notText, show, simpleRule, type Rule } from './rule.js';
import type { SectionClass } from './setting.js';
import { secret } from './text-rules.js';

/** A list of secrets, each as a text or as a section with more to say. No message shows a text: it may be a secret. */
export function secretsOrSections(Section: SectionClass): Rule {
  return {
    name: 'secretsOrSections',
    schema: { type: 'array', items: { anyOf: [secret.schema, { $ref: `#/$defs/${Section.name}` }] } },
    check: (value) => {
      if (!Array.isArray(value))
        return [{ at: [], message: `must be a list of keys ("- …"), not ${kindOf(value)}` }];
      return value.flatMap((item: unknown, i) => {
        if (isPlainObject(item)) return [];
        if (typeof item !== 'string')
          return [{ at: [i], message: `must be a key or a mapping with "value", not ${kindOf(item)}` }];
        return secret.check(item).map(({ message }) => ({ at: [i], message }));
      });
    },
    secretsIn: (value) => (Array.isArray(value) ? value : []).filter((item) => typeof item === 'string'),
  };
}

export const NO_EXPIRY = 'has no value; write a date, or remove the key for one that never expires';

export const expiry: Rule = simpleRule(
  'expiry',
  { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\d([Tt].*)?$' },
  (value) => {
    if (typeof value !== 'string') return notText(value);
    const wanted = 'write a date such as 2027-01-31 (to the end of that day in UTC) or 2027-01-31T12:00:00Z';
    return parseExpiry(value.trim()) === null ? `${show(value)} is no date; ${wanted}` : null;
  },
);

export const keyOrder: Rule = simpleRule('keyOrder', { enum: ['round_robin', 'ordered'] }, (value) =>
  value === 'round_robin' || value === 'ordered'
    ? null
    : `must be round_robin or ordered, not ${show(value)}`,
);
