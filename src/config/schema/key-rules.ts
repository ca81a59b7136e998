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
  };
}

const DAY_MS = 86_400_000;
const DATE = /^\d{4}-\d\d-\d\d$/;
const INSTANT = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** The first millisecond at which it is over; null for what is no date. A date lasts to the end of its day in UTC. */
export function parseExpiry(written: string): number | null {
  const text = written.trim();
  if (DATE.test(text)) {
    const day = Date.parse(`${text}T00:00:00Z`);
    // Trap: 2027-02-30 is read as the 2nd of March.
    return Number.isNaN(day) || new Date(day).toISOString().slice(0, 10) !== text ? null : day + DAY_MS;
  }
  if (!INSTANT.test(text) || parseExpiry(text.slice(0, 10)) === null) return null;
  const instant = Date.parse(text);
  return Number.isNaN(instant) ? null : instant;
}

export const expiry: Rule = simpleRule(
  'expiry',
  { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\d([Tt].*)?$' },
  (value) => {
    if (typeof value !== 'string') return notText(value);
    const wanted = 'write a date such as 2027-01-31 (to the end of that day in UTC) or 2027-01-31T12:00:00Z';
    return parseExpiry(value) === null ? `${show(value)} is no date; ${wanted}` : null;
  },
);

export const keyOrder: Rule = simpleRule('keyOrder', { enum: ['round_robin', 'ordered'] }, (value) =>
  value === 'round_robin' || value === 'ordered'
    ? null
    : `must be round_robin or ordered, not ${show(value)}`,
);
