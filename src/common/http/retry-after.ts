/**
 * How long a provider asks to be left alone, in ms; undefined where it does not say so readably.
 * `retry-after-ms` wins; `Retry-After` is seconds (fractions are seen in the wild) or an HTTP date (RFC 9110 §10.2.3).
 * `wallClockMs` only serves to read a date.
 */
export function retryAfterMs(
  header: (name: string) => string | undefined,
  wallClockMs: () => number,
): number | undefined {
  const milliseconds = plainNumber(header('retry-after-ms'));
  if (milliseconds !== undefined) return milliseconds;
  const value = header('retry-after');
  if (value === undefined) return undefined;
  const seconds = plainNumber(value);
  if (seconds !== undefined) return seconds * 1000;
  const date = /[a-z]/i.test(value) && value.length < 64 ? Date.parse(value) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - wallClockMs());
}

function plainNumber(value: string | undefined): number | undefined {
  const text = value?.trim();
  if (!text || text.length > 20 || !/^\d+(\.\d*)?$/.test(text)) return undefined;
  return Number(text);
}
