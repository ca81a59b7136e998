import type { WallClock } from '../common/time/clock.js';
import type { QuotaHold } from './quota-hold.js';

/** What one request holds of its quotas, from before it is sent until it is over. The first end counts. */
export class QuotaTicket {
  constructor(
    private readonly holds: readonly QuotaHold[],
    readonly countsTokens: boolean,
    private readonly wallClock: WallClock,
  ) {}

  /** The provider got the request; it used so many tokens. */
  settle(tokens: number): void {
    const nowMs = this.wallClock();
    for (const hold of this.holds) hold.settle(tokens, nowMs);
  }

  /** The provider never got it. */
  giveBack(): void {
    const nowMs = this.wallClock();
    for (const hold of this.holds) hold.giveBack(nowMs);
  }
}
