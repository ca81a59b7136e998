import type { Choice } from '../concurrency/pick.js';
import { type Claimable, gatesMs } from '../concurrency/claimable.js';
import { spillReason } from '../concurrency/spill.js';
import type { Upstream } from '../upstream.js';

/** An upstream that a request would take, if it had a slot of it and, where it is one, the place of a trial. */
export interface Want {
  readonly upstream: Upstream;
  /** It rests, and the request would try whether it is back. */
  readonly trial: boolean;
}

/**
 * What `pick` would take, in its order, as far as slots, or places of trials, have to be got from elsewhere first: up to the
 * first that has them in hand.
 */
export function wants(
  candidates: readonly Claimable[],
  tried: ReadonlySet<Upstream> | null,
  now: number,
  choice: Choice | null,
): Want[] {
  const wanted: Want[] = [];
  let trials: Want[] = [];
  let tier: number | null = null;
  for (let i = 0; i < candidates.length; i++) {
    const candidate = candidates[i] as Claimable;
    const { entry, gates, upstream } = candidate;
    if (tier !== null && entry.tier !== tier) {
      if (addUntilInHand(wanted, trials, now)) return wanted;
      trials = [];
    }
    ({ tier } = entry);
    if (tried?.has(upstream)) continue;
    const trial = upstream.restingMs(now) > 0;
    if (trial && !upstream.trialDue(now)) continue;
    if (gates !== null && gatesMs(gates) > 0) continue;
    if (choice !== null && entry.spill !== null) {
      const reason = spillReason(candidates, i, tried, choice.patience, now, choice.full);
      if (reason === null) continue;
    }
    if (trial) trials.push({ upstream, trial });
    else if (addUntilInHand(wanted, [{ upstream, trial }], now)) return wanted;
  }
  addUntilInHand(wanted, trials, now);
  return wanted;
}

/** True where one is in hand: nothing behind it would be taken. */
function addUntilInHand(wanted: Want[], more: readonly Want[], now: number): boolean {
  for (const want of more) {
    const { seat, slots } = want.upstream;
    if ((seat ?? slots).free && (!want.trial || want.upstream.trialOpen(now))) return true;
    wanted.push(want);
  }
  return false;
}
