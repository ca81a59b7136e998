const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const NUMBER = String.raw`(\d+(?:[.,]\d+)?)`;
const DATE_PART = ['Y', 'M', 'W', 'D'].map((unit) => `(?:${NUMBER}${unit})?`).join('');
const TIME_PART = ['H', 'M', 'S', 'MS'].map((unit) => `(?:${NUMBER}${unit})?`).join('');
const SHAPE = new RegExp(`^P${DATE_PART}(T${TIME_PART})?$`);
/** Milliseconds of each number in {@link SHAPE}, in order: Y M W D, then H M S MS. */
const FACTORS = [365 * DAY, 30 * DAY, 7 * DAY, DAY, HOUR, MINUTE, SECOND, 1] as const;
/** The expression above tries a number against each unit: a bound keeps that cheap for any input. */
const MAX_LENGTH = 64;

/**
 * Milliseconds of an ISO-8601 duration, extended by `MS`: a year counts 365 days, a month 30, `M` before
 * `T` is months and minutes after it. A fraction may stand on the smallest unit written. Null for anything else:
 * negative, empty, lower case, units twice or out of order, beyond 2^53 ms.
 */
export function parseDuration(text: string): number | null {
  if (text.length > MAX_LENGTH) return null;
  const match = SHAPE.exec(text);
  if (match === null || match[5] === 'T') return null;
  const numbers = [...match.slice(1, 5), ...match.slice(6)];
  let totalMs = 0;
  let last: string | undefined;
  for (const [i, factor] of FACTORS.entries()) {
    const number = numbers[i];
    if (number === undefined) continue;
    if (last !== undefined && !/^\d+$/.test(last)) return null;
    last = number;
    totalMs += Number(number.replace(',', '.')) * factor;
  }
  if (last === undefined) return null;
  const roundedMs = Math.round(totalMs);
  if (!Number.isSafeInteger(roundedMs)) return null;
  // Zero means "off" in the file: what is merely short must not become it.
  return totalMs > 0 ? Math.max(1, roundedMs) : 0;
}

/** The shortest usual form: `PT2S`, `PT500MS`, `PT1M30S`, `PT1.5S`, `P1DT12H`. Takes whole milliseconds ≥ 0. */
export function formatDuration(ms: number): string {
  let rest = Math.max(0, Math.round(ms));
  if (!Number.isFinite(rest)) return '∞';
  if (rest === 0) return 'PT0S';
  if (rest < SECOND) return `PT${rest}MS`;
  const take = (factor: number, unit: string): string => {
    const count = Math.floor(rest / factor);
    rest %= factor;
    return count > 0 ? `${count}${unit}` : '';
  };
  const date = take(DAY, 'D');
  const time = take(HOUR, 'H') + take(MINUTE, 'M') + secondsOf(rest);
  return `P${date}${time === '' ? '' : `T${time}`}`;
}

function secondsOf(ms: number): string {
  if (ms === 0) return '';
  const whole = Math.floor(ms / SECOND);
  const fraction = String(ms % SECOND)
    .padStart(3, '0')
    .replace(/0{1,3}$/, '');
  return fraction === '' ? `${whole}S` : `${whole}.${fraction}S`;
}
