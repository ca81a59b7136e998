import { Lease } from '../lease.js';
import type { Upstream } from '../upstream.js';
import { type Claim, type Claimable, gatesMs } from './claimable.js';
import { type Patience, type SpillReason, spillReason } from './spill.js';

/** How a request that can wait chooses among its entries. */
export interface Choice {
  readonly patience: Patience;
  /** There is no place left to wait. */
  readonly full: boolean;
  spilled(candidate: Claimable, reason: SpillReason): void;
}

/**
 * The first candidate whose upstream was not tried yet, that does not rest, is not closed by a gate and has a free slot,
 * taken in the same step. One that rests but takes a trial stands behind all others of its tier. Without a `choice`,
 * entries with `spill_after` are entries like any other.
 */
export function pick<C extends Claimable>(
  candidates: readonly C[],
  tried: ReadonlySet<Upstream> | null,
  now: number,
  choice: Choice | null,
): Claim<C> | null {
  let trial: C | null = null;
  let trialReason: SpillReason | null = null;
  for (let i = 0; i < candidates.length; i++) {
    const candidate = candidates[i] as C;
    if (trial !== null && candidate.entry.tier !== trial.entry.tier) break;
    const { gates, upstream } = candidate;
    if (tried?.has(upstream)) continue;
    const resting = upstream.restingMs(now) > 0;
    if (resting && (trial !== null || !upstream.trialOpen(now))) continue;
    if (gates !== null && gatesMs(gates) > 0) continue;
    if (!(upstream.seat ?? upstream.slots).free) continue;
    let reason: SpillReason | null = null;
    if (choice !== null && candidate.entry.spill !== null) {
      reason = spillReason(candidates, i, tried, choice.patience, now, choice.full);
      if (reason === null) continue;
    }
    if (!resting) return take(candidate, now, reason, choice);
    trial = candidate;
    trialReason = reason;
  }
  return trial === null ? null : take(trial, now, trialReason, choice);
}

/** Slots, and the place of a trial, were looked at in the same synchronous step. */
function take<C extends Claimable>(
  candidate: C,
  now: number,
  reason: SpillReason | null,
  choice: Choice | null,
): Claim<C> {
  const { keeper, recovery, seat, slots } = candidate.upstream;
  const trialOf = candidate.upstream.restingMs(now) > 0 ? recovery : null;
  trialOf?.takeTrial();
  const lease = new Lease(candidate.upstream, now, trialOf);
  if (!(seat ?? slots).claim(lease)) throw new Error('a slot was claimed where none is free');
  keeper?.took(lease);
  if (reason !== null) choice?.spilled(candidate, reason);
  return { candidate, lease };
}
