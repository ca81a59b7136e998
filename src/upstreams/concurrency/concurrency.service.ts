import { Inject, Injectable } from '@nestjs/common';
import type { Clock } from '../../common/time/clock.js';
import type { Gate } from '../../contracts/gate.js';
import { CLOCK } from '../../contracts/ports.js';
import { Lease } from '../lease.js';
import type { Upstream } from '../upstream.js';

/** Something that can be claimed: an upstream, seen from one model. */
export interface Claimable {
  readonly upstream: Upstream;
  readonly gates: readonly Gate[] | null;
}

/** Nothing could be claimed. */
export interface ClaimRefusal {
  /** True where at least one candidate is alive (and therefore full). */
  readonly someAlive: boolean;
  /** Time until the first closed one opens by itself; Infinity where none does. */
  readonly soonestMs: number;
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
   * taken in the same step.
   */
  claim<C extends Claimable>(candidates: readonly C[], tried: ReadonlySet<Upstream> | null): Claim<C> | null {
    const now = this.clock.now();
    for (const candidate of candidates) {
      const { gates, upstream } = candidate;
      if (tried?.has(upstream) || upstream.restingMs(now) > 0) continue;
      if (gates !== null && gates.some((gate) => gate.closedMs() > 0)) continue;
      if (upstream.slots.claim()) return { candidate, lease: new Lease(upstream, now) };
    }
    return null;
  }

  /** Why nothing could be claimed. */
  refusal(candidates: readonly Claimable[]): ClaimRefusal {
    const now = this.clock.now();
    let someAlive = false;
    let soonestMs = Infinity;
    for (const { gates, upstream } of candidates) {
      let closedMs = upstream.restingMs(now);
      for (const gate of gates ?? []) closedMs = Math.max(closedMs, gate.closedMs());
      if (closedMs === 0) someAlive = true;
      else soonestMs = Math.min(soonestMs, closedMs);
    }
    return { someAlive, soonestMs };
  }
}
