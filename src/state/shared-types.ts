/** One limit: of an upstream, of a slot group, of trials. */
export interface Pool {
  readonly name: string;
  readonly limit: number;
}

/** A place in each of these pools. `held`: how many this replica holds there, after what is asked. */
export interface PooledLease {
  readonly id: string;
  readonly pools: readonly { readonly pool: Pool; readonly held: number }[];
}

/** A failure, as a streak counts it. Durations, never times: the replicas' clocks have nothing in common. */
export interface RestBooking {
  readonly name: string;
  readonly baseMs: number;
  readonly capMs: number;
  /** What the provider asked for; 0 = nothing. */
  readonly askedMs: number;
  /** Since the attempt began. */
  readonly ageMs: number;
  readonly trial: boolean;
}

export interface RestState {
  readonly name: string;
  /** 0 = healthy. */
  readonly streak: number;
  /** Another number is another rest. */
  readonly number: number;
  /** Of the whole rest, and what is left of it. */
  readonly totalMs: number;
  readonly leftMs: number;
  /** The provider asked not to be bothered for that long. */
  readonly quietMs: number;
  readonly afterTrial: boolean;
}

/** What other replicas did. */
export type StoreEvent =
  /** A place of this pool is kept for this replica, from `inMs` on. */
  | { readonly kind: 'wake'; readonly pool: string; readonly inMs: number }
  | { readonly kind: 'rest'; readonly state: RestState }
  | { readonly kind: 'replicas'; readonly count: number }
  | { readonly kind: 'gone'; readonly replica: string }
  | { readonly kind: 'excess'; readonly replica: string; readonly pool: string; readonly slots: number }
  | { readonly kind: 'held'; readonly fact: string; readonly leftMs: number }
  /** Somebody added to a sum, in a part of time of the store's clock. */
  | { readonly kind: 'counted'; readonly sum: string; readonly part: number; readonly amount: number }
  /** What another replica has reserved of a sum, all in all. */
  | { readonly kind: 'reserved'; readonly sum: string; readonly replica: string; readonly tokens: number }
  | { readonly kind: 'mark'; readonly number: number }
  | { readonly kind: 'told'; readonly replica: string; readonly topic: string; readonly text: string }
  /** Somebody came back and asks all to tell what they hold. */
  | { readonly kind: 'roll' };
