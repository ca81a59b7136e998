import { Inject, Injectable } from '@nestjs/common';
import type { Clock } from '../../common/time/clock.js';
import type { ModelConfig } from '../../config/gateway-config.js';
import type { SkipReason } from '../../contracts/gate.js';
import { CLOCK } from '../../contracts/ports.js';
import type { Upstream } from '../upstream.js';
import { type Claim, type Claimable, isClosed } from './claimable.js';
import type { SharedClaims } from '../shared/shared-claims.js';
import { SlotRooms } from './slot-rooms.js';
import { settlesWithin } from './settle-wait.js';
import { type Unserved, type WaitEnd, Waiter } from './waiter.js';

export type { Claim, Claimable } from './claimable.js';

/** All places of trials are taken, or the slots of an old request are: nobody knows how long. As for busy ones. */
const TRIAL_UNDER_WAY_MS = 1000;

/** Nothing could be claimed. */
export interface ClaimRefusal {
  /** True where at least one candidate is alive (and therefore full). */
  readonly someAlive: boolean;
  /** Time until the first closed one may be asked again by itself; Infinity where none does. */
  readonly soonestMs: number;
  /** The one thing that keeps all of them closed, without those that never open; null = several things, or rests. */
  readonly allClosedBy: SkipReason | null;
}

/** A wait, and what came or will come of it. */
export interface Waiting<C extends Claimable> {
  readonly waiter: Waiter;
  readonly result: Claim<C> | Unserved | Promise<Claim<C> | Unserved>;
}

/** Who waits, and how much of the queue it takes. */
export interface Request {
  readonly consumer: string;
  readonly priority: number;
  readonly bytes: number;
}

/**
 * Claims slots: one operation over the whole candidate list, so that what stands behind it (groups, queues, a shared
 * store) can change without its callers.
 */
@Injectable()
export class ConcurrencyService {
  #shared: SharedClaims | null = null;

  constructor(
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly rooms: SlotRooms,
  ) {}

  /** Where limits are shared with other replicas, claims go through this; null where they are not. */
  get shared(): SharedClaims | null {
    return this.#shared;
  }

  share(claims: SharedClaims): void {
    this.#shared = claims;
  }

  /** What a request for this model brings to each of its claims; null where the model has no queue. */
  waiterFor(model: ModelConfig, { bytes, consumer, priority }: Request): Waiter | null {
    const queue = this.rooms.queueOf(model);
    if (queue === null) return null;
    return new Waiter({ queue, bytes, consumer, priority, order: this.rooms.sequence.next() });
  }

  /**
   * The first candidate whose upstream was not tried yet, that does not rest, is not closed by a gate and has a free slot,
   * taken in the same step: after all who wait for the same slots. One that rests but takes a trial stands behind all others
   * of its tier. The `waiter` of a model with a queue says which of its entries may be used already.
   */
  claim<C extends Claimable>(
    candidates: readonly C[],
    tried: ReadonlySet<Upstream> | null,
    waiter: Waiter | null = null,
  ): Claim<C> | null {
    return this.rooms.dispatcher.claim(candidates, tried, waiter);
  }

  /**
   * Waits for what {@link claim} did not find: in the queue of the model, or for the end of the pause of the group in which
   * the request failed. Null where there is neither. `limitMs`: no longer than that. Without `queueing` only for a pause.
   */
  wait<C extends Claimable>(
    candidates: readonly C[],
    tried: ReadonlySet<Upstream> | null,
    waiter: Waiter | null,
    limitMs: number,
    queueing = true,
  ): Waiting<C> | null {
    const now = this.clock.now();
    const pauseMs = tried === null ? 0 : settlesWithin(this.rooms, candidates, tried, now);
    const queueMs = queueing ? (waiter?.queue?.config.waitMs ?? 0) : 0;
    if (queueMs === 0 && pauseMs === 0) return null;
    const patient = waiter ?? this.#bystander();
    const budgetMs = Math.min(limitMs, Math.max(queueMs - patient.waitedMs(now), pauseMs));
    const result = this.rooms.dispatcher.wait(patient, candidates, tried, budgetMs);
    // The candidates are the request's own: what is claimed is one of them.
    return { waiter: patient, result: result as Waiting<C>['result'] };
  }

  /**
   * Waits for this one candidate, as long as that may take; null where it rests, or where the wait is likely to be in vain.
   * A wait that was is {@link Unserved} with `closed`.
   */
  waitFor<C extends Claimable>(candidate: C, waiter: Waiter, limitMs: number): Waiting<C> | null {
    const now = this.clock.now();
    const seat = this.rooms.seatOf(candidate.upstream);
    if (seat === undefined || isClosed(candidate, now)) return null;
    if ((seat.estimateMs(waiter, now) ?? 0) > limitMs) return null;
    const result = this.rooms.dispatcher.wait(waiter, [candidate], null, limitMs, 'closed');
    return { waiter, result: result as Waiting<C>['result'] };
  }

  /** Waits in the queue of its model for something that is no slot, no longer than the queue and `limitMs` allow. */
  attend(waiter: Waiter, limitMs: number): Unserved | Promise<WaitEnd> {
    const leftMs = (waiter.queue?.config.waitMs ?? 0) - waiter.waitedMs(this.clock.now());
    return this.rooms.dispatcher.attend(waiter, Math.min(limitMs, leftMs));
  }

  /** What it attended for has come. */
  called(waiter: Waiter): void {
    this.rooms.dispatcher.called(waiter);
  }

  /** Whoever waited has gone; its wait ends. */
  leave(waiter: Waiter): void {
    this.rooms.dispatcher.leave(waiter);
  }

  /** Something opened early that a gate had closed: who waits for this upstream is looked after now. */
  opened(upstream: Upstream): void {
    const seat = this.rooms.seatOf(upstream);
    if (seat !== undefined) this.rooms.dispatcher.dispatch(seat.room);
  }

  /** The service ends: nobody waits any more. */
  close(): void {
    this.rooms.close();
  }

  /** Time after which a refused request might be served: from 1 s, which is also the answer without data, to a minute. */
  retryMs(candidates: readonly Claimable[]): number {
    const now = this.clock.now();
    let bestMs = Infinity;
    for (const candidate of candidates) {
      const seat = this.rooms.seatOf(candidate.upstream);
      if (seat !== undefined && !isClosed(candidate, now)) bestMs = Math.min(bestMs, seat.retryMs ?? 0);
    }
    return Math.min(MAX_RETRY_MS, Math.max(MIN_RETRY_MS, bestMs === Infinity ? 0 : bestMs));
  }

  /** Why nothing could be claimed. */
  refusal(candidates: readonly Claimable[]): ClaimRefusal {
    const now = this.clock.now();
    let someAlive = false;
    let soonestMs = Infinity;
    const reasons = new Set<SkipReason | null>();
    for (const candidate of candidates) {
      const { upstream } = candidate;
      const restingMs = upstream.restingMs(now);
      let closedMs = restingMs;
      if (restingMs > 0) closedMs = upstream.opensMs(now) || Math.min(restingMs, TRIAL_UNDER_WAY_MS);
      const gated = closedBy(candidate);
      if (gated !== null) closedMs = Math.max(closedMs, gated.ms);
      // What never opens by itself has no say where something else does.
      if (closedMs !== Infinity) reasons.add(gated?.reason ?? null);
      if (closedMs === 0) someAlive = true;
      else soonestMs = Math.min(soonestMs, closedMs);
    }
    const [only = null] = reasons;
    return { someAlive, soonestMs, allClosedBy: reasons.size === 1 ? only : null };
  }

  /** Waits in no queue: only for a pause to end. */
  #bystander(): Waiter {
    return new Waiter({
      queue: null,
      bytes: 0,
      consumer: '',
      priority: 0,
      order: this.rooms.sequence.next(),
    });
  }
}

/** What its gates say: closed for the longest of them, by its quota where that is one of them. */
function closedBy({ gates }: Claimable): { readonly ms: number; readonly reason: SkipReason } | null {
  const closed = (gates ?? []).filter((gate) => gate.closedMs() > 0);
  const [first] = closed;
  if (first === undefined) return null;
  const reason = closed.some((gate) => gate.reason === 'quota') ? 'quota' : first.reason;
  return { ms: Math.max(...closed.map((gate) => gate.closedMs())), reason };
}

const MIN_RETRY_MS = 1000;
const MAX_RETRY_MS = 60_000;
