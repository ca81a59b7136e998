import { kindOf, show, simpleRule, type Rule } from './rule.js';

const unquote = (value: unknown): string =>
  typeof value === 'string' && /^\d+$/.test(value) ? '; remove the quotes' : '';

/** Slots; null and 0 = unlimited. */
export const limit: Rule = simpleRule('limit', { type: ['integer', 'null'], minimum: 0 }, (value) => {
  if (value === null) return null;
  const wanted = 'must be a whole number ≥ 0 (0 or null = unlimited)';
  const valid = typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
  return valid ? null : `${wanted}, not ${show(value)}${unquote(value)}`;
});

/** Any whole number. */
export const whole: Rule = simpleRule('whole', { type: 'integer' }, (value) => {
  const valid = typeof value === 'number' && Number.isSafeInteger(value);
  return valid ? null : `must be a whole number, not ${show(value)}${unquote(value)}`;
});

/** A whole number in these bounds, both included. */
export function wholeNumber(minimum: number, maximum = Number.MAX_SAFE_INTEGER): Rule {
  const bounded = maximum < Number.MAX_SAFE_INTEGER;
  const range = bounded ? `from ${minimum} to ${maximum}` : `≥ ${minimum}`;
  return simpleRule('wholeNumber', { type: 'integer', minimum, ...(bounded ? { maximum } : {}) }, (value) => {
    const valid =
      typeof value === 'number' && Number.isSafeInteger(value) && value >= minimum && value <= maximum;
    return valid ? null : `must be a whole number ${range}, not ${show(value)}${unquote(value)}`;
  });
}

export const port: Rule = simpleRule('port', { type: 'integer', minimum: 0, maximum: 65535 }, (value) => {
  const valid = typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 65535;
  return valid
    ? null
    : `must be a whole number from 0 (any free port) to 65535, not ${show(value)}${unquote(value)}`;
});

export const tier: Rule = simpleRule('tier', { type: 'integer' }, (value) => {
  const valid = typeof value === 'number' && Number.isSafeInteger(value);
  return valid ? null : `must be a whole number (lower = better), not ${show(value)}${unquote(value)}`;
});

export const weight: Rule = simpleRule('weight', { type: 'number', minimum: 0 }, (value) => {
  const valid = typeof value === 'number' && Number.isFinite(value) && value >= 0;
  return valid ? null : `must be a number ≥ 0 (0 = last resort), not ${show(value)}${unquote(value)}`;
});

/** How often something may be done: at least once. */
export const count: Rule = simpleRule('count', { type: 'integer', minimum: 1 }, (value) => {
  const valid = typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
  return valid ? null : `must be a whole number ≥ 1, not ${show(value)}${unquote(value)}`;
});

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  B: 1,
  kB: 1000,
  MB: 1000 ** 2,
  GB: 1000 ** 3,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
};
const MAX_BYTES = 1024 ** 3;

export const byteSize: Rule = simpleRule(
  'byteSize',
  {
    type: ['string', 'integer'],
    pattern: '^\\d+ ?(B|kB|MB|GB|KiB|MiB|GiB)?$',
    minimum: 1,
    maximum: MAX_BYTES,
  },
  (value) => {
    if (typeof value !== 'string' && typeof value !== 'number')
      return `must be a size such as 64MiB, not ${kindOf(value)}`;
    const bytes = parseByteSize(value);
    if (bytes === null) return `must be a size such as 64MiB, 512KiB, 10MB or 1000000, not ${show(value)}`;
    if (bytes === 0) return 'must be more than 0';
    return bytes > MAX_BYTES ? `must be at most 1GiB, not ${show(value)}` : null;
  },
);

/** Bytes of `64MiB`, `10MB`, `500kB`, `1000B`, `1000`; null for anything else. */
export function parseByteSize(value: string | number): number | null {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? value : null;
  const match = value.length <= 32 ? /^(\d+) ?([A-Za-z]*)$/.exec(value) : null;
  const unit = match?.[2] ?? '';
  if (match === null || !Object.hasOwn(UNITS, unit)) return null;
  return Number(match[1]) * (UNITS[unit] ?? NaN);
}
