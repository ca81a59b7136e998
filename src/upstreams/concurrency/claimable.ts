import type { Gate } from '../../contracts/gate.js';
import type { SpillConfig } from '../../config/gateway-config.js';
import type { Lease } from '../lease.js';
import type { Upstream } from '../upstream.js';

/** Something that can be claimed: an upstream, seen from one model. */
export interface Claimable {
  readonly upstream: Upstream;
  readonly gates: readonly Gate[] | null;
  /** A lower tier is better. Those of one tier stand together. */
  readonly entry: { readonly tier: number; readonly spill: SpillConfig | null };
}

export interface Claim<C extends Claimable> {
  readonly candidate: C;
  readonly lease: Lease;
}

/** Time until rests and gates let anybody in, if only as a trial: 0 = now, Infinity = not by itself. Slots are not asked. */
export function opensMs({ gates, upstream }: Claimable, now: number): number {
  return Math.max(upstream.opensMs(now), gatesMs(gates));
}

/** Whether it takes no ordinary request now. */
export function isClosed({ gates, upstream }: Claimable, now: number): boolean {
  return upstream.restingMs(now) > 0 || gatesMs(gates) > 0;
}

/** Time until something of this changes by the clock; 0 = nothing will. */
export function changesMs({ gates, upstream }: Claimable, now: number): number {
  // In the time for trials it is open, and still rests.
  return Math.max(upstream.opensMs(now) || upstream.restingMs(now), gatesMs(gates));
}

export function gatesMs(gates: readonly Gate[] | null): number {
  let longestMs = 0;
  if (gates !== null) for (const gate of gates) longestMs = Math.max(longestMs, gate.closedMs());
  return longestMs;
}
