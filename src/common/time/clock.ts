/** Monotonic time. Injected everywhere, so that tests own it. */
export interface Clock {
  /** Milliseconds since an arbitrary start, never going back. */
  now(): number;
}

export const monotonicClock: Clock = { now: () => performance.now() };

/** The longest delay `setTimeout` takes; beyond it Node fires after 1 ms. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** A delay that `setTimeout` takes as meant: whole, ≥ 1, and never overflowing. */
export function timerDelay(ms: number): number {
  return Math.min(Math.max(1, Math.ceil(ms)), MAX_TIMER_MS);
}

/** Milliseconds since 1 January 1970; may be set back. For what providers and people count by, and for nothing else. */
export type WallClock = () => number;

export const wallClock: WallClock = () => Date.now();
