import type { ReserveAnswer, Sum, SumAsk, SumChange, SumMemory, SumStates } from './shared-sums.js';
import type { Pool, PooledLease, RestBooking, RestState, StoreEvent } from './shared-types.js';

/** What a claim asks for, in order of preference. */
export interface ClaimAsk {
  readonly pools: readonly { readonly pool: Pool; readonly held: number }[];
  /** Skipped while this rests; null = never rests, or is to be tried all the same. */
  readonly rest: string | null;
}

/** In which pool this replica waits, and how its first in line stands. */
export interface WaitNote {
  readonly pool: string;
  readonly priority: number;
  readonly waitedMs: number;
}

export interface ClaimAnswer {
  /** Which of the asks was granted; null = none. */
  readonly granted: number | null;
  /** When a place lapses by itself at the soonest; null = unknown. */
  readonly lapseMs: number | null;
  /** Nothing is given out for that long. */
  readonly heldBackMs: number;
}

export interface RenewAnswer {
  readonly replicas: number;
  readonly heldBackMs: number;
  /** Leases that had lapsed: others may have used what they stand for. */
  readonly lost: readonly string[];
}

export interface EnrolAnswer {
  readonly heldBackMs: number;
  readonly replicas: number;
  /** How far others are above their even share: replica → pool → slots. */
  readonly excesses: readonly { readonly replica: string; readonly pool: string; readonly slots: number }[];
}

/** Of what is remembered of histories: the one that was not used for longest is forgotten first. */
export interface HistoryBounds {
  /** After its last use. */
  readonly keptMs: number;
  readonly histories: number;
  readonly prefixesPerHistory: number;
}

/**
 * What replicas share, one round trip for each decision. Every method rejects with {@link StateUnavailable} where the store
 * does not answer in time. The rules (limits, order, who waits) stand in the store, so that all replicas follow the same.
 */
export interface SharedStore {
  /** This process, among those that share the store; another one after each start. */
  readonly replica: string;
  readonly connected: boolean;
  /** Begins to connect, and goes on for ever. */
  open(listener: StoreListener): void;
  close(): Promise<void>;
  /** Lapses in every case after the lease time. An answer that comes too late is given back. */
  claim(lease: string, asks: readonly ClaimAsk[], waits: readonly WaitNote[]): Promise<ClaimAnswer>;
  release(lease: PooledLease, pauseMs: number): Promise<void>;
  /** Does not wait in these pools any more, and needs no place that is kept for it. */
  forget(pools: readonly Pool[]): Promise<void>;
  renew(leases: readonly PooledLease[]): Promise<RenewAnswer>;
  enrol(leases: readonly PooledLease[], pools: readonly Pool[]): Promise<EnrolAnswer>;
  /** Ends in order. */
  leave(): Promise<void>;
  failed(booking: RestBooking): Promise<RestState>;
  succeeded(name: string): Promise<void>;
  rests(names: readonly string[]): Promise<readonly RestState[]>;
  /** It stays so for at least that long; 0 = it is over. */
  hold(fact: string, ms: number): Promise<void>;
  /** What is left of each, in ms. */
  held(facts: readonly string[]): Promise<readonly number[]>;
  /** Takes of all these sums, or of none. An answer that comes too late is given back. */
  reserve(asks: readonly SumAsk[]): Promise<ReserveAnswer>;
  settle(changes: readonly SumChange[]): Promise<void>;
  /** Before `enrol`: others may go by the sums as soon as that is done. */
  resume(memories: readonly SumMemory[]): Promise<void>;
  /** The event `mark` of this number stands behind all events that the answer knows of. */
  sums(sums: readonly Sum[], mark: number): Promise<SumStates>;
  /**
   * The id under which the longest of these prefixes (ascending) is known, else `id`; all of them are known by it then. With
   * an empty `id` what is not known stays so, and the result is empty.
   */
  recall(prefixes: readonly string[], id: string, bounds: HistoryBounds): Promise<string>;
  /** Tells the other replicas something that nobody keeps. */
  tell(topic: string, text: string): Promise<void>;
  /** Whether this replica may do what only one of them should, for that long. */
  lead(task: string, forMs: number): Promise<boolean>;
}

export interface StoreListener {
  /** A connection stands; nothing was told on it yet. */
  connected(): void;
  /**
   * `reason` is short and holds no secret. `unseenMs`: for how long other replicas may not have noticed yet, and go on as if
   * nothing was if the store is well again before they do.
   */
  lost(reason: string, unseenMs?: number): void;
  happened(event: StoreEvent): void;
  /** It works, but not as it should; told once. */
  warned?(trouble: string): void;
}
