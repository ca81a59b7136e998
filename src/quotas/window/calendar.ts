const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const WEEK_MS = 7 * DAY_MS;
/** 1 January 1970 was a Thursday; weeks turn on Mondays. */
const MONDAY_MS = 4 * DAY_MS;

/** One window of time: from `startMs`, up to but without `endMs`. */
export interface Span {
  readonly startMs: number;
  readonly endMs: number;
}

/** Which window a moment lies in. All in UTC. */
export type Calendar = (atMs: number) => Span;

/** The month of the calendar for `P1M`, weeks from Monday for seven days, else windows counted from 1 January 1970. */
export function calendarOf(per: { readonly text: string; readonly ms: number }): Calendar {
  if (isOneMonth(per.text)) return monthOf;
  return alignedTo(per.ms, offsetOf(per.ms));
}

/** From 1 January 1970 to the first turn of windows of this length. */
export function offsetOf(lengthMs: number): number {
  return lengthMs === WEEK_MS ? MONDAY_MS : 0;
}

/** `P1M` and `P30D` last the same, but only one of them is the month of the calendar. */
export function isOneMonth(text: string): boolean {
  return /^P0{0,20}1M$/.test(text);
}

function alignedTo(lengthMs: number, offsetMs: number): Calendar {
  return (atMs) => {
    const startMs = Math.floor((atMs - offsetMs) / lengthMs) * lengthMs + offsetMs;
    return { startMs, endMs: startMs + lengthMs };
  };
}

function monthOf(atMs: number): Span {
  const date = new Date(atMs);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return { startMs: Date.UTC(year, month, 1), endMs: Date.UTC(year, month + 1, 1) };
}
