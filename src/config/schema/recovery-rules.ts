import { parseDuration } from '../../common/time/duration.js';
import type { RecoveryMode } from '../gateway-config.js';
import { isPlainObject } from '../loader/plain-object.js';
import { nearest } from '../loader/nearest.js';
import { notText, show, simpleRule, type Rule, type RuleFinding } from './rule.js';
import type { SectionClass } from './setting.js';
import { duration } from './tolerant-rules.js';

export const RECOVERY_MODES: readonly RecoveryMode[] = ['probe', 'half_open', 'both', 'timer'];

/** One of a few words. */
export function word(words: readonly string[]): Rule {
  const choice = `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`;
  return simpleRule('word', { enum: words }, (value) => {
    if (typeof value !== 'string') return `must be ${choice}, not ${show(value)}`;
    if (words.includes(value)) return null;
    const similar = nearest(value, words);
    const hint = similar?.close === true ? `; did you mean "${similar.word}"?` : '';
    return `must be ${choice}, not ${show(value)}${hint}`;
  });
}

/** A duration, or the mapping that says the same at more length. Used with `tolerated`, as a duration is. */
export function durationOr(Section: SectionClass): Rule {
  return {
    name: 'section',
    schema: { anyOf: [duration.schema, { $ref: `#/$defs/${Section.name}` }] },
    check: (value) => (isPlainObject(value) ? [] : duration.check(value)),
  };
}

/** Used with `tolerated`. A first rest of nothing would stay nothing however often it is doubled. */
export const restBase: Rule = simpleRule('duration', duration.schema, (value) => {
  const finding = duration.check(value)[0];
  if (finding !== undefined) return finding.message;
  return parseDuration(String(value).trim()) === 0
    ? `${show(value)} is no rest and is ignored; write PT1S or PT500MS`
    : null;
});

const PATH = 'must be a path from the root of the host, such as /health or /api/version';

/** Goes into a request line as it is. */
export const probePath: Rule = simpleRule(
  'probePath',
  { type: 'string', pattern: '^/(?!/)[!$-~]*$|^/$' },
  (value) => {
    if (typeof value !== 'string') return notText(value);
    if (/^https?:/i.test(value))
      return `${PATH}, without scheme and host; the host is that of the provider's url`;
    if (!value.startsWith('/') || value.startsWith('//')) return `${PATH}, not ${show(value)}`;
    if (value.includes('#')) return `${PATH}, without "#"`;
    return /^[!-~]+$/.test(value)
      ? null
      : `${PATH}; a space or a letter beyond ASCII must be percent-encoded`;
  },
);

const STATUS = 'must be a status from 200 to 599, or a list of them such as [200, 204]';

/** One status or a list of them. Below 200 none is an answer. */
export const expectedStatuses: Rule = {
  name: 'expectedStatuses',
  schema: {
    anyOf: [
      { type: 'integer', minimum: 200, maximum: 599 },
      { type: 'array', items: { type: 'integer', minimum: 200, maximum: 599 }, minItems: 1 },
    ],
  },
  check: (value) => {
    if (!Array.isArray(value))
      return isStatus(value) ? [] : [{ at: [], message: `${STATUS}, not ${show(value)}` }];
    if (value.length === 0) return [{ at: [], message: `${STATUS}; the list is empty` }];
    return value.flatMap((item: unknown, i): RuleFinding[] =>
      isStatus(item) ? [] : [{ at: [i], message: `must be a status from 200 to 599, not ${show(item)}` }],
    );
  },
};

function isStatus(value: unknown): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 200 && value <= 599;
}
