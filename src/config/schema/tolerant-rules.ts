import { parseDuration } from '../../common/time/duration.js';
import type { ThinkTagsMode } from '../gateway-config.js';
import { show, simpleRule, type Rule } from './rule.js';

export const durationPattern =
  '^P(?=[0-9T])([0-9.,]+Y)?([0-9.,]+M)?([0-9.,]+W)?([0-9.,]+D)?(T(?=[0-9])([0-9.,]+H)?([0-9.,]+M)?([0-9.,]+S)?([0-9.,]+MS)?)?$';

/** Used with `tolerated`: the seed asks for a warning, not for a refusal. */
export const duration: Rule = simpleRule(
  'duration',
  { type: 'string', pattern: durationPattern },
  (value) => {
    if (typeof value === 'string' && parseDuration(value.trim()) !== null) return null;
    const hint =
      typeof value === 'number' && value >= 0 && value < 1e9
        ? `PT${value}S`
        : 'PT30S, PT1M30S, PT500MS or P1D';
    return `${show(value)} is no duration and is ignored; write ${hint}`;
  },
);

export const onOff: Rule = simpleRule('onOff', { enum: ['on', 'off', true, false] }, (value) =>
  parseOnOff(value) === null ? `must be on or off, not ${show(value)}` : null,
);

/** Null for a value that is unknown. In YAML 1.2 `on` and `off` are texts; booleans mean the same. */
export function parseOnOff(value: unknown): boolean | null {
  if (value === true || value === 'on') return true;
  return value === false || value === 'off' ? false : null;
}

export const thinkTags: Rule = simpleRule(
  'thinkTags',
  { enum: ['off', 'split', 'strip', true, false] },
  (value) =>
    parseThinkTags(value) === null
      ? `${show(value)} is unknown and means off; write off, split or strip`
      : null,
);

/** Null for a value that is unknown. `true` ≡ split, `false` ≡ off, as boolean or as text. */
export function parseThinkTags(value: unknown): ThinkTagsMode | null {
  const word =
    typeof value === 'string' || typeof value === 'boolean' ? String(value).trim().toLowerCase() : '';
  if (word === 'split' || word === 'true') return 'split';
  if (word === 'off' || word === 'false') return 'off';
  return word === 'strip' ? 'strip' : null;
}
