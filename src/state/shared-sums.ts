/** How the windows of a sum go: by the calendar, from 1970 on; by its months; or with every moment. */
export type SumWindow =
  | { readonly kind: 'calendar'; readonly lengthMs: number; readonly offsetMs: number }
  | { readonly kind: 'month' }
  | { readonly kind: 'sliding'; readonly lengthMs: number };

/** What all replicas count together against one limit. */
export interface Sum {
  readonly name: string;
  readonly window: SumWindow;
}

/** What one request takes of a sum: counted at once, or reserved until it is settled. */
export interface SumAsk {
  readonly sum: Sum;
  readonly limit: number;
  readonly used: number;
  readonly reserved: number;
}

export type ReserveAnswer =
  /** In which part of time each was counted. */
  | { readonly kind: 'granted'; readonly parts: readonly number[] }
  /** Which of the asks have nothing left, and when they may have by themselves. */
  | { readonly kind: 'used up'; readonly closed: readonly { readonly ask: number; readonly ms: number }[] }
  /** Nothing is given out at this time. */
  | { readonly kind: 'held back'; readonly ms: number };

export interface SumChange {
  readonly sum: Sum;
  /** Null = the present one. */
  readonly part: number | null;
  readonly used: number;
  readonly reserved: number;
}

/** `when`: begin of a window of the calendar, or ms ago in a sliding one. */
export type SumUse = readonly [when: number, amount: number];

/** What a replica knows of a sum when it comes (back). */
export interface SumMemory {
  readonly sum: Sum;
  /** Oldest first; without what is untold. */
  readonly known: readonly SumUse[];
  /** Counted without the store. */
  readonly untold: readonly SumUse[];
  readonly reserved: number;
}

/** What counts at this moment. */
export interface SumState {
  readonly parts: ReadonlyMap<number, number>;
  /** Replica → tokens. */
  readonly reserved: ReadonlyMap<string, number>;
}

export interface SumStates {
  /** By the clock of the store. */
  readonly nowMs: number;
  readonly heldBackMs: number;
  readonly states: readonly SumState[];
}

/** A use in a sliding window counts with its part of the window: that is how long a part is. */
export function partMsOf(lengthMs: number): number {
  return Math.max(1, Math.floor(lengthMs / 120));
}
