/** Who holds a slot: known by identity. */
export interface Holder {
  /** Monotonic. */
  readonly startedAt: number;
}

/** For whom an estimate is made: its place in a line. */
export interface Placed {
  readonly priority: number;
  readonly order: number;
}

/**
 * What stands between an upstream and its plain counter where more than its own limit decides: a group, a pause between
 * exchanges, or others who wait. Null at an upstream that has none of it, which then costs nothing.
 */
export interface Seat {
  /** Whether a slot could be taken at this moment. */
  readonly free: boolean;
  /** Takes a slot, of the upstream and of its group, where both have one. */
  claim(holder: Holder): boolean;
  release(holder: Holder): void;
  /**
   * The slot of its group for a background probe, to be given back by the returned function: only while nothing runs in the
   * group and nobody waits, null otherwise. Outside of a group a probe takes no slot.
   */
  holdForProbe(): (() => void) | null;
  /** Time until a slot should be free for whoever stands at this place; null without data. */
  estimateMs(place: Placed, now: number): number | null;
  /** As the log of a refusal shows it: `0/1 gpu0=1/1`. */
  toString(): string;
}
