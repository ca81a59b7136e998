/**
 * How long a provider asks to be left alone, in ms; undefined where it does not say so readably. One rule: of
 * `retry-after-ms` and `Retry-After`, in this order, the first that can be read counts alone, be it the shorter one.
 * `Retry-After` is seconds (fractions are seen in the wild) or an HTTP date (RFC 9110 §10.2.3); `wallClockMs` only
 * serves to read a date.
 */
export function retryAfterMs(
  header: (name: string) => string | undefined,
  wallClockMs: () => number,
): number | undefined {
  return plainNumber(header('retry-after-ms')) ?? standardMs(header('retry-after'), wallClockMs);
}

function standardMs(value: string | undefined, wallClockMs: () => number): number | undefined {
  if (value === undefined) return undefined;
  const seconds = plainNumber(value);
  if (seconds !== undefined) return seconds * 1000;
  const date = /[a-z]/i.test(value) && value.length < 64 ? Date.parse(inGmt(value.trim())) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - wallClockMs());
}

/** The oldest form of a date, `Sun Nov  6 08:49:37 1994`, names no zone and means GMT (RFC 9110 §5.6.7). */
function inGmt(date: string): string {
  return /\d{4}$/.test(date) ? `${date} GMT` : date;
}

function plainNumber(value: string | undefined): number | undefined {
  const text = value?.trim();
  if (!text || text.length > 20 || !/^\d+(\.\d*)?$/.test(text)) return undefined;
  return Number(text);
}
