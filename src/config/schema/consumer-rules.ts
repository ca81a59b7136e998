import { isPlainObject } from '../loader/plain-object.js';
import { sections } from './structure-rules.js';
import type { SectionClass } from './setting.js';
import { notText, simpleRule, type Rule } from './rule.js';

/** Hex in either case. The digest is no secret, but long and useless in a message. */
export const sha256: Rule = simpleRule(
  'sha256',
  { type: 'string', pattern: '^[0-9A-Fa-f]{64}$' },
  (value) => {
    if (typeof value !== 'string') return notText(value);
    if (/^[0-9a-f]{64}$/i.test(value)) return null;
    return `must be the SHA-256 of the key as 64 hexadecimal digits${hashHint(value)}`;
  },
);

/** What was written instead, without a character of it: it may be the key itself. */
function hashHint(value: string): string {
  if (/^\s*[0-9a-f]{64}\s*$/i.test(value)) return ', without white space around them';
  if (/^sha-?256[:=$-]/i.test(value)) return ' alone, without "sha256:" in front of them';
  if (/^0x/i.test(value)) return ' alone, without "0x" in front of them';
  if (/^[\w+/-]{43}=?$/.test(value) && !value.startsWith('lp-')) return ', not in base64';
  const { length } = value;
  const given = `, not a text of ${length} ${length === 1 ? 'character' : 'characters'}`;
  return `${given}; a key in the clear belongs to "value"`;
}

/** The list of a consumer's keys: each of them as a hash or in the clear. */
export function consumerKeys(Section: SectionClass): Rule {
  const list = sections(Section, 'key', false);
  return {
    ...list,
    check: (value) => [
      ...list.check(value),
      ...(Array.isArray(value) ? value : []).flatMap((key: unknown, i) => {
        const given = isPlainObject(key)
          ? [key['sha256'], key['value']].filter((one) => (one ?? null) !== null).length
          : 1;
        if (given === 1) return [];
        const message =
          given === 2
            ? 'has both "sha256" and "value"; keep one'
            : 'needs "sha256" (the hash of the key) or "value" (the key itself)';
        return [{ at: [i], message }];
      }),
    ],
  };
}
