import type { Upstream } from '../upstream.js';
import { type Claimable, isClosed } from './claimable.js';
import type { Placed } from './seat.js';

/** Why an entry with `spill_after` may be used. */
export type SpillReason = 'waited' | 'estimate' | 'unavailable' | 'full';

/** What decides about the entries with `spill_after` of one request. */
export interface Patience extends Placed {
  waitedMs(now: number): number;
}

/**
 * Whether the entry at `index` may be used now, and why; null = not yet, or not for a request of this priority. `full`:
 * there is no place left to wait.
 */
export function spillReason(
  candidates: readonly Claimable[],
  index: number,
  tried: ReadonlySet<Upstream> | null,
  patience: Patience,
  now: number,
  full: boolean,
): SpillReason | null {
  const spill = candidates[index]?.entry.spill ?? null;
  if (spill === null || excluded(candidates[index], patience)) return null;
  let someOpen = false;
  let estimateMs = Infinity;
  for (let i = 0; i < index; i++) {
    const earlier = candidates[i] as Claimable;
    const { upstream } = earlier;
    if (excluded(earlier, patience) || tried?.has(upstream) || isClosed(earlier, now)) continue;
    someOpen = true;
    // Without data nothing is known of it: only the time waited counts.
    estimateMs = Math.min(estimateMs, upstream.seat?.estimateMs(patience, now) ?? 0);
  }
  if (!someOpen) return 'unavailable';
  if (full) return 'full';
  if (patience.waitedMs(now) >= spill.afterMs) return 'waited';
  return estimateMs > spill.afterMs ? 'estimate' : null;
}

/** An entry that a request of this priority never uses. */
export function excluded(candidate: Claimable | undefined, { priority }: Placed): boolean {
  const spill = candidate?.entry.spill ?? null;
  return spill !== null && priority < spill.minPriority;
}
