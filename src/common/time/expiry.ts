const DAY_MS = 86_400_000;
const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;
/** RFC 3339 §5.6; the seconds may be left out. */
const INSTANT = /^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}):(\d{2})(?::(\d{2})(\.\d{1,9})?)?([Zz]|[+-]\d{2}:\d{2})$/;

/**
 * The first moment (unix milliseconds) at which something that `expires` then is no longer valid: of a plain date the
 * end of that UTC day, of an RFC 3339 instant that instant. Null for anything else, a 30th of February too.
 */
export function parseExpiry(text: string): number | null {
  const startMs = startOfDay(text);
  if (startMs !== null) return startMs + DAY_MS;
  const [, date = '', hours = '', minutes = '', seconds = '0', , zone = ''] = INSTANT.exec(text) ?? [];
  if (startOfDay(date) === null || Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59)
    return null;
  const offset = /^[+-](\d{2}):(\d{2})$/.exec(zone);
  if (offset !== null && (Number(offset[1]) > 23 || Number(offset[2]) > 59)) return null;
  const ms = Date.parse(text.toUpperCase().replace(' ', 'T'));
  return Number.isNaN(ms) ? null : ms;
}

function startOfDay(date: string): number | null {
  const [, year, month, day] = DATE.exec(date) ?? [];
  if (year === undefined) return null;
  const ms = Date.UTC(Number(year), Number(month) - 1, Number(day));
  // Years below 100 would be taken as 19xx, and days beyond the month would roll over.
  return new Date(ms).toISOString().startsWith(date) ? ms : null;
}
