/** A response header by its name in lower case, all values of a header that came several times joined by `, `. */
type Header = (name: string) => string | undefined;

const RESET = /^(x-ratelimit)-reset(-[a-z0-9-]{1,64})?$|^(anthropic-ratelimit)-([a-z0-9-]{1,64})-reset$/;

/** Below: seconds from now; above: seconds since 1970, or (13 digits) milliseconds. */
const FIRST_EPOCH_SECONDS = 1e9;
const FIRST_EPOCH_MS = 1e11;

/**
 * How long a provider that was asked too fast wants to be left alone, in ms; undefined where it does not say so
 * readably. `retry-after-ms`, else `Retry-After`, else the resets of its counters: of those with nothing remaining the
 * longest, or of all where all or none are used up. What is unreadable or lies in the past counts as absent.
 */
export function rateLimitRestMs(
  names: Iterable<string>,
  header: Header,
  wallClockMs: number,
): number | undefined {
  const milliseconds = decimal(header('retry-after-ms'));
  if (milliseconds !== undefined) return milliseconds;
  const retryAfter = header('retry-after')?.trim();
  const seconds = decimal(retryAfter);
  if (seconds !== undefined) return seconds * 1000;
  return untilDate(retryAfter, wallClockMs) ?? resetMs(names, header, wallClockMs);
}

function resetMs(names: Iterable<string>, header: Header, wallClockMs: number): number | undefined {
  let longestUsedUp: number | undefined;
  let longest: number | undefined;
  for (const name of names) {
    const match = RESET.exec(name);
    if (match === null) continue;
    const [, family, suffix = '', anthropic, counter = ''] = match;
    const ms = parseReset(header(name), wallClockMs);
    if (ms === undefined) continue;
    const remaining = header(
      family === undefined ? `${anthropic}-${counter}-remaining` : `${family}-remaining${suffix}`,
    );
    longest = Math.max(longest ?? 0, ms);
    if (decimal(remaining) === 0) longestUsedUp = Math.max(longestUsedUp ?? 0, ms);
  }
  return longestUsedUp ?? longest;
}

/**
 * One reset in any of the forms in use: a Go duration (`1m12s`, `6ms`, `7.66s`), seconds, seconds or milliseconds since
 * 1970, RFC 3339 or an HTTP date. Undefined for what is unreadable, negative, or past.
 */
export function parseReset(value: string | undefined, wallClockMs: number): number | undefined {
  const text = value?.trim();
  if (text === undefined || text === '' || text.length > 64) return undefined;
  const number = decimal(text);
  if (number !== undefined) {
    if (number < FIRST_EPOCH_SECONDS) return number * 1000;
    return notNegative((number < FIRST_EPOCH_MS ? number * 1000 : number) - wallClockMs);
  }
  return goDuration(text) ?? untilDate(text, wallClockMs);
}

const GO_UNITS: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ns: 1e-6,
};
const GO_SHAPE = /^(?:\d{1,15}(?:\.\d{0,15})?(?:h|ms|m|s|us|µs|μs|ns)){1,8}$/;

function goDuration(text: string): number | undefined {
  if (!GO_SHAPE.test(text)) return undefined;
  let total = 0;
  for (const [, number, unit] of text.matchAll(/(\d+(?:\.\d*)?)([a-zµμ]+)/g)) {
    total += Number(number) * (GO_UNITS[unit ?? ''] ?? Number.NaN);
  }
  return total;
}

/** A date with a zone; the oldest HTTP form names none and means GMT (RFC 9110 §5.6.7). */
function untilDate(text: string | undefined, wallClockMs: number): number | undefined {
  if (text === undefined || text.length > 64) return undefined;
  const dated = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d/.test(text) || /^[A-Z][a-z]{2,8},? /.test(text);
  if (!dated) return undefined;
  const zoned = /(?:[zZ]|GMT|UTC|[+-]\d\d:?\d\d)$/.test(text);
  const date = Date.parse(zoned ? text : `${text} GMT`);
  return Number.isNaN(date) ? undefined : notNegative(date - wallClockMs);
}

function notNegative(ms: number): number | undefined {
  return ms >= 0 ? ms : undefined;
}

/** A plain number ≥ 0. Bounded, so that no header costs more than a look. */
function decimal(value: string | undefined): number | undefined {
  const text = value?.trim();
  if (text === undefined || text.length > 20 || !/^\d+(?:\.\d*)?$/.test(text)) return undefined;
  return Number(text);
}
