import type { QuotaWindow } from './window/quota-window.js';

/**
 * What one replica may take of a quota while nobody can be asked: an even share of what was left at the loss, for each knows
 * what all had used and reserved then. Lives from the loss until the sums are known again.
 */
export class OutageShare {
  /**
   * @param used what this replica counts from now on
   * @param atLoss what was reserved, by this replica and by all
   * @param replicas that share what is left; 0 = this one gets nothing
   */
  constructor(
    readonly used: QuotaWindow,
    private readonly atLoss: { readonly own: number; readonly all: number },
    private readonly replicas: number,
  ) {}

  /** `room`: what all that was used before the loss leaves of the limit now; `reserved`: by this replica. */
  remaining(room: number, reserved: number, nowMs: number): number {
    const left = room - this.atLoss.all;
    // Trap: a lack is not shared out, else each would have less of it than there is.
    const share = left < 0 ? left : this.replicas === 0 ? 0 : Math.floor(left / this.replicas);
    const remaining = share - this.used.used(nowMs) - (reserved - this.atLoss.own);
    return this.replicas === 0 ? Math.min(0, remaining) : remaining;
  }
}
