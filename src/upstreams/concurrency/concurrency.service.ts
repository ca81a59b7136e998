import { Inject, Injectable } from '@nestjs/common';
import type { Clock } from '../../common/time/clock.js';
import type { Gate, SkipReason } from '../../contracts/gate.js';
import { CLOCK } from '../../contracts/ports.js';
import { Lease } from '../lease.js';
import type { Upstream } from '../upstream.js';

/** Something that can be claimed: an upstream, seen from one model. */
export interface Claimable {
  readonly upstream: Upstream;
  readonly gates: readonly Gate[] | null;
  /** A lower tier is better. Those of one tier stand together. */
  readonly entry: { readonly tier: number };
}

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

export interface Claim<C extends Claimable> {
  readonly candidate: C;
  readonly lease: Lease;
}

/**
 * Claims slots: one operation over the whole candidate list, so that what stands behind it (groups, queues, a shared
 * store) can change without its callers.
 */
@Injectable()
export class ConcurrencyService {
  constructor(@Inject(CLOCK) private readonly clock: Clock) {}

  /**
   * The first candidate whose upstream was not tried yet, that does not rest, is not closed by a gate and has a free slot,
   * taken in the same step. One that rests but takes a trial stands behind all others of its tier.
   */
  claim<C extends Claimable>(candidates: readonly C[], tried: ReadonlySet<Upstream> | null): Claim<C> | null {
    const now = this.clock.now();
    let trial: C | null = null;
    for (const candidate of candidates) {
      if (trial !== null && candidate.entry.tier !== trial.entry.tier) break;
      const { gates, upstream } = candidate;
      if (tried?.has(upstream)) continue;
      const resting = upstream.restingMs(now) > 0;
      if (resting && (trial !== null || !upstream.trialOpen(now))) continue;
      if (gates !== null && gates.some((gate) => gate.closedMs() > 0)) continue;
      if (!resting && upstream.slots.claim()) return { candidate, lease: new Lease(upstream, now) };
      if (resting && upstream.slots.free) trial = candidate;
    }
    return trial === null ? null : claimTrial(trial, now);
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
}

/** Slot and place were looked at in the same synchronous step. */
function claimTrial<C extends Claimable>(candidate: C, now: number): Claim<C> {
  const { recovery, slots } = candidate.upstream;
  if (recovery === null || !slots.claim()) throw new Error('a trial was claimed where none is open');
  recovery.takeTrial();
  return { candidate, lease: new Lease(candidate.upstream, now, recovery) };
}

/** What its gates say: closed for the longest of them, by its quota where that is one of them. */
function closedBy({ gates }: Claimable): { readonly ms: number; readonly reason: SkipReason } | null {
  const closed = (gates ?? []).filter((gate) => gate.closedMs() > 0);
  const [first] = closed;
  if (first === undefined) return null;
  const reason = closed.some((gate) => gate.reason === 'quota') ? 'quota' : first.reason;
  return { ms: Math.max(...closed.map((gate) => gate.closedMs())), reason };
}
