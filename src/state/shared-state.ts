import type { Clock } from '../common/time/clock.js';
import type { EnrolAnswer, RenewAnswer, SharedStore } from './shared-store.js';
import type { Pool, PooledLease, StoreEvent } from './shared-types.js';
import { StateUnavailable } from './state-unavailable.js';

/** Injection token of the {@link SharedState}; null where this process shares nothing. */
export const SHARED_STATE = Symbol.for('llm-proxy:shared-state');

/** What replicas do while the store is gone. */
export type OnError = 'local' | 'reject' | 'strict';

/** Something whose state replicas share. Told of the life of the store, in the order in which things happen. */
export interface SharedPart {
  /** What stands in this replica's name. */
  leases(): readonly PooledLease[];
  pools(): readonly Pool[];
  /** What is held from now on is not told to the store any more until it is `joined`. */
  enrolling(): void;
  joined(answer: EnrolAnswer): void;
  renewed(answer: RenewAnswer, sentAt: number): void;
  lost(): void;
  /** The store stayed away: each replica lives on its share. */
  alone(): void;
  happened(event: StoreEvent): void;
}

export interface SharedStateOptions {
  readonly store: SharedStore;
  readonly clock: Clock;
  readonly onError: OnError;
  readonly leaseMs: number;
  /** Of one answer; also the time before shares are used after a loss that all replicas see. */
  readonly timeoutMs: number;
  /** At start, how long the store is waited for. */
  readonly patienceMs: number;
  readonly log: StateLog;
}

/** `reason` is short and holds no secret. */
export interface StateLog {
  lost(reason: string, onError: OnError): void;
  back(afterMs: number): void;
  warned?(trouble: string): void;
}

type Phase = 'down' | 'enrolling' | 'ok';

/**
 * Whether the store is there, and what each change of that means: the one place that enrols this replica, renews its
 * leases and declares an outage. Lives as long as the service; owns the timers of it.
 */
export class SharedState {
  readonly store: SharedStore;
  readonly onError: OnError;
  readonly #parts: SharedPart[] = [];
  #phase: Phase = 'down';
  #met = false;
  #replicas = 1;
  /** How often their number was told. */
  #counts = 0;
  #toldLost = false;
  /** Of the last try; null = none has failed yet. */
  #lastReason: string | null = null;
  #downSince: number;
  /** When shares are used, however often it is tried to enrol meanwhile; null = no outage. */
  #aloneAt: number | null = null;
  /** Until then not all others need have come back, and are not gone for that. */
  #gatheredAt = -Infinity;
  #renewal: NodeJS.Timeout | null = null;
  #grace: NodeJS.Timeout | null = null;
  #retry: NodeJS.Timeout | null = null;
  #closed = false;
  readonly #firstWord = Promise.withResolvers<void>();

  constructor(private readonly options: SharedStateOptions) {
    this.store = options.store;
    this.onError = options.onError;
    this.#downSince = options.clock.now();
  }

  /** Leases are told, and claims go to the store. */
  get ok(): boolean {
    return this.#phase === 'ok';
  }

  get degraded(): boolean {
    return this.#phase !== 'ok';
  }

  /** Every request is refused meanwhile. */
  get rejecting(): boolean {
    return this.onError === 'reject' && this.degraded;
  }

  /** Known at the last word of the store; 0 = never met it. */
  get replicas(): number {
    return this.#met ? this.#replicas : 0;
  }

  get leaseMs(): number {
    return this.options.leaseMs;
  }

  join(part: SharedPart): void {
    this.#parts.push(part);
  }

  /** Resolves once the store was met, or after the patience; a newcomer in an empty store waits for others as well. */
  async open(): Promise<void> {
    this.store.open({
      connected: () => void this.#enrol(),
      lost: (reason, unseenMs) => this.#lost(reason, unseenMs),
      happened: (event) => this.#happened(event),
      warned: (trouble) => this.options.log.warned?.(trouble),
    });
    const { log, patienceMs } = this.options;
    const late = setTimeout(() => this.#firstWord.resolve(), patienceMs);
    await this.#firstWord.promise;
    clearTimeout(late);
    if (this.#phase !== 'ok') this.#tellLost(this.#lastReason ?? 'it was not reached', log);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#stopTimers();
    if (this.#phase === 'ok') await this.store.leave().catch(ignoreUnavailable);
    this.#phase = 'down';
    await this.store.close();
  }

  async #enrol(): Promise<void> {
    if (this.#closed) return;
    this.#phase = 'enrolling';
    this.#stopTimers();
    for (const part of this.#parts) part.enrolling();
    const leases = this.#parts.flatMap((part) => [...part.leases()]);
    const pools = this.#parts.flatMap((part) => [...part.pools()]);
    let answer: EnrolAnswer;
    const counts = this.#counts;
    try {
      answer = await this.store.enrol(leases, pools);
    } catch (error) {
      if (!(error instanceof StateUnavailable)) throw error;
      // Lost on the way: that was told already. Otherwise it will not be told, so it is asked again.
      if (this.#phase === 'enrolling') this.#lost(error.message);
      if (this.store.connected) this.#retry = setTimeout(() => void this.#enrol(), RETRY_MS);
      return;
    }
    if (this.#phase !== 'enrolling') return;
    this.#phase = 'ok';
    this.#met = true;
    this.#aloneAt = null;
    this.#gatheredAt = this.options.clock.now() + answer.heldBackMs;
    this.#counted(answer.replicas, counts);
    if (this.#toldLost) this.options.log.back(this.options.clock.now() - this.#downSince);
    this.#toldLost = false;
    this.#renewal = setInterval(() => void this.#renew(), this.options.leaseMs / RENEWALS_PER_LEASE);
    this.#renewal.unref();
    for (const part of this.#parts) part.joined(answer);
    const waitMs = Math.min(answer.heldBackMs, this.options.patienceMs);
    if (waitMs === 0) this.#firstWord.resolve();
    else setTimeout(() => this.#firstWord.resolve(), waitMs);
  }

  #lost(reason: string, unseenMs = 0): void {
    this.#lastReason = reason;
    const wasOk = this.#phase === 'ok';
    const wasDown = this.#phase === 'down';
    this.#phase = 'down';
    if (wasDown || this.#closed) return;
    this.#stopTimers();
    if (wasOk) this.#downSince = this.options.clock.now();
    for (const part of this.#parts) part.lost();
    if (this.#met) this.#tellLost(reason, this.options.log);
    const now = this.options.clock.now();
    this.#aloneAt ??= now + this.options.timeoutMs + unseenMs;
    this.#grace = setTimeout(
      () => {
        for (const part of this.#parts) part.alone();
      },
      Math.max(0, this.#aloneAt - now),
    );
    this.#grace.unref();
  }

  #tellLost(reason: string, log: StateLog): void {
    if (this.#toldLost) return;
    this.#toldLost = true;
    log.lost(reason, this.onError);
  }

  async #renew(): Promise<void> {
    const sentAt = this.options.clock.now();
    const counts = this.#counts;
    const leases = this.#parts.flatMap((part) => [...part.leases()]);
    try {
      const answer = await this.store.renew(leases);
      this.#counted(answer.replicas, counts);
      for (const part of this.#parts) part.renewed(answer, sentAt);
    } catch (error) {
      // The next one comes soon; that nothing comes any more, or only refusals, is noticed by the connection.
      ignoreUnavailable(error);
    }
  }

  /** Trap: what others told behind an answer is heard before whoever waits for the answer goes on. */
  #counted(replicas: number, countsBefore: number): void {
    if (countsBefore !== this.#counts) return;
    const gathering = this.options.clock.now() < this.#gatheredAt;
    this.#replicas = gathering ? Math.max(this.#replicas, replicas) : replicas;
    this.#counts++;
  }

  #happened(event: StoreEvent): void {
    if (event.kind === 'replicas') {
      const more = event.count > this.#replicas;
      this.#counted(event.count, this.#counts);
      // Its share has shrunk: how far it is above it must be known before the store goes away.
      if (more && this.#phase === 'ok') void this.#renew();
    }
    // Whoever is in the middle of telling has told.
    if (event.kind === 'roll' && this.#phase === 'ok') void this.#renew();
    for (const part of this.#parts) part.happened(event);
  }

  #stopTimers(): void {
    if (this.#renewal !== null) clearInterval(this.#renewal);
    if (this.#grace !== null) clearTimeout(this.#grace);
    if (this.#retry !== null) clearTimeout(this.#retry);
    this.#retry = null;
    this.#renewal = null;
    this.#grace = null;
  }
}

const RETRY_MS = 500;
const RENEWALS_PER_LEASE = 3;

/** That the store is away is no fault of who asks. */
export function ignoreUnavailable(error: unknown): void {
  if (!(error instanceof StateUnavailable)) throw error;
}
