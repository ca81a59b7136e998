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

/** Takes the candidate that {@link choose} says, in the same step. */
export function pick<C extends Claimable>(
  candidates: readonly C[],
  tried: ReadonlySet<Upstream> | null,
  now: number,
  choice: Choice | null,
): Claim<C> | null {
  const index = choose(candidates, tried, now, choice);
  const candidate = candidates[index];
  if (candidate === undefined) return null;
  const reason = choice === null ? null : reasonOf(candidates, index, tried, now, choice);
  return take(candidate, now, reason, choice);
}

/**
 * Index of the first candidate whose upstream was not tried yet, that does not rest, is not closed by a gate and has a free
 * slot; −1 = none. One that rests but takes a trial stands behind all others of its tier. Without a `choice`, entries with
 * `spill_after` are entries like any other.
 */
export function choose(
  candidates: readonly Claimable[],
  tried: ReadonlySet<Upstream> | null,
  now: number,
  choice: Choice | null,
): number {
  let trial = -1;
  let trialTier = 0;
  for (let i = 0; i < candidates.length; i++) {
    const { entry, gates, upstream } = candidates[i] as Claimable;
    if (trial >= 0 && entry.tier !== trialTier) break;
    if (tried?.has(upstream)) continue;
    const resting = upstream.restingMs(now) > 0;
    if (resting && (trial >= 0 || !upstream.trialOpen(now))) continue;
    if (gates !== null && gatesMs(gates) > 0) continue;
    if (!(upstream.seat ?? upstream.slots).free) continue;
    if (choice !== null && entry.spill !== null && reasonOf(candidates, i, tried, now, choice) === null)
      continue;
    if (!resting) return i;
    trial = i;
    trialTier = entry.tier;
  }
  return trial;
}

/** Of entries with `spill_after` only. */
function reasonOf(
  candidates: readonly Claimable[],
  index: number,
  tried: ReadonlySet<Upstream> | null,
  now: number,
  { full, patience }: Choice,
): SpillReason | null {
  return spillReason(candidates, index, tried, patience, now, full);
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
