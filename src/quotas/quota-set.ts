import type { WallClock } from '../common/time/clock.js';
import type { WindowGate } from '../contracts/gate.js';
import type { QuotaHold } from './quota-hold.js';
import type { QuotaMeter } from './quota-meter.js';
import { QuotaTicket } from './quota-ticket.js';

/**
 * All quotas that one request counts against: those of its provider, key, upstream and entry, or those of its consumer.
 * Made once; owns nothing but the list, since other sets share its meters.
 */
export class QuotaSet implements WindowGate {
  readonly reason = 'quota';
  /** Whether the tokens of a request matter. */
  readonly countsTokens: boolean;

  /** @param meters at least one */
  constructor(
    readonly meters: readonly QuotaMeter[],
    private readonly wallClock: WallClock,
  ) {
    this.countsTokens = meters.some(({ quota }) => quota.unit === 'tokens');
  }

  /** Both together. */
  and(other: QuotaSet): QuotaSet {
    return new QuotaSet([...this.meters, ...other.meters], this.wallClock);
  }

  /** The latest of the windows that are used up; 0 where none is. */
  closedMs(): number {
    const nowMs = this.wallClock();
    let closedMs = 0;
    for (const meter of this.meters) {
      const opensInMs = meter.opensInMs(nowMs);
      if (opensInMs > closedMs) closedMs = opensInMs;
    }
    return closedMs;
  }

  /** Time until its longest window turns. */
  turnsInMs(): number {
    const longest = this.meters.reduce((one, other) => (other.quota.per.ms > one.quota.per.ms ? other : one));
    return longest.turnsInMs(this.wallClock());
  }

  /**
   * {@link reserve}, where others count too with their consent; at once where nobody has to be asked. `null` with `closedMs` 0:
   * they did not answer. Never rejects.
   */
  take(tokens: number): QuotaTicket | null | Promise<QuotaTicket | null> {
    const peers = this.meters[0]?.peers ?? null;
    if (peers === null) return this.reserve(tokens);
    const nowMs = this.wallClock();
    // The gate by which candidates are looked at: most that is used up costs no question.
    for (const meter of this.meters) if (meter.opensInMs(nowMs) > 0) return null;
    const taking = peers.take(this.meters, tokens);
    return taking instanceof Promise ? taking.then((hold) => this.#ticketOf(hold)) : this.#ticketOf(taking);
  }

  #ticketOf(hold: QuotaHold | null): QuotaTicket | null {
    return hold === null ? null : new QuotaTicket([hold], this.countsTokens, this.wallClock);
  }

  /** Looks and reserves in one step; null = used up. `tokens` is what the request may use at most, as far as one can tell. */
  reserve(tokens: number): QuotaTicket | null {
    const nowMs = this.wallClock();
    for (const meter of this.meters) if (meter.remaining(nowMs) <= 0) return null;
    const holds = this.meters.map((meter) => meter.reserve(tokens, nowMs));
    return new QuotaTicket(holds, this.countsTokens, this.wallClock);
  }
}
