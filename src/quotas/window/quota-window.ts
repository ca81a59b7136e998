/** What was used, and when (wall clock): how a window is kept on disk. */
export type Use = readonly [atMs: number, amount: number];

/**
 * Counts what was used in the present window of one quota. All times are wall-clock milliseconds, since that is what
 * providers count by; a clock that is set back or forward never frees what was used, and never closes a window for
 * longer than its length.
 */
export interface QuotaWindow {
  /** What counts at this moment. */
  used(nowMs: number): number;
  /** Adds to what was used; returns the place for `takeBack`. */
  book(amount: number, nowMs: number): number;
  /** Undoes a booking, where it still counts; one of an earlier window is gone already. */
  takeBack(amount: number, place: number, nowMs: number): void;
  /** Time until less than `room` counts; 0 = now. Where no time brings that about, until all that counts is gone. */
  opensInMs(room: number, nowMs: number): number;
  /** Time until nothing counts any more of what counts now. */
  turnsInMs(nowMs: number): number;
  /** What counts now, oldest first. */
  uses(nowMs: number): Use[];
}
