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
  /** What keeps the first of them closed, where gates close all of them; null = something else is in the way. */
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
    const gates: (Gate | null)[] = [];
    for (const candidate of candidates) {
      const { upstream } = candidate;
      const restingMs = upstream.restingMs(now);
      let closedMs = restingMs;
      if (restingMs > 0) closedMs = upstream.opensMs(now) || Math.min(restingMs, TRIAL_UNDER_WAY_MS);
      const gate = closedGate(candidate);
      gates.push(gate);
      if (gate !== null) closedMs = Math.max(closedMs, gate.closedMs());
      if (closedMs === 0) someAlive = true;
      else soonestMs = Math.min(soonestMs, closedMs);
    }
    const allClosed = gates.length > 0 && gates.every((gate) => gate !== null);
    return {
      someAlive,
      soonestMs,
      allClosedBy: allClosed ? (soonest(gates as Gate[])?.reason ?? null) : null,
    };
  }
}

/** Slot and place were looked at in the same synchronous step. */
function claimTrial<C extends Claimable>(candidate: C, now: number): Claim<C> {
  const { recovery, slots } = candidate.upstream;
  if (recovery === null || !slots.claim()) throw new Error('a trial was claimed where none is open');
  recovery.takeTrial();
  return { candidate, lease: new Lease(candidate.upstream, now, recovery) };
}

/** The gate that keeps the candidate closed for longest. */
function closedGate({ gates }: Claimable): Gate | null {
  let closed: Gate | null = null;
  let longestMs = 0;
  for (const gate of gates ?? []) {
    const closedMs = gate.closedMs();
    if (closedMs > longestMs) [closed, longestMs] = [gate, closedMs];
  }
  return closed;
}

function soonest(gates: readonly Gate[]): Gate | undefined {
  return gates.toSorted((a, b) => a.closedMs() - b.closedMs())[0];
}
