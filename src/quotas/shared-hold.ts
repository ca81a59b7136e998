import type { QuotaHold } from './quota-hold.js';
import type { Booked, QuotaMeter } from './quota-meter.js';

/** Of one meter. */
export interface HeldOf {
  readonly meter: QuotaMeter;
  /** A request, where it was counted; null = tokens. */
  readonly booked: Booked | null;
  /** In which part of time the store counted it; null = that is not known. */
  readonly part: number | null;
}

/** Who is told of the end. */
export interface HoldKeeper {
  ended(held: readonly HeldOf[], reserved: number, used: number, sent: boolean): void;
}

/** What one request holds of all its quotas, where replicas count them together. */
export class SharedHold implements QuotaHold {
  #open = true;

  constructor(
    private readonly keeper: HoldKeeper,
    private readonly held: readonly HeldOf[],
    private readonly reserved: number,
  ) {}

  settle(tokens: number): void {
    this.#end(tokens, true);
  }

  giveBack(): void {
    this.#end(0, false);
  }

  #end(used: number, sent: boolean): void {
    if (!this.#open) return;
    this.#open = false;
    this.keeper.ended(this.held, this.reserved, used, sent);
  }
}
