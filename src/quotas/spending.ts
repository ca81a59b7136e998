import type { QuotaTicket } from './quota-ticket.js';

/** What one request of a consumer spends of its quotas: one request, and the tokens of all its attempts. Ends once. */
export class Spending {
  #tokens = 0;
  #reached = false;

  constructor(private readonly ticket: QuotaTicket) {}

  get countsTokens(): boolean {
    return this.ticket.countsTokens;
  }

  /** An attempt reached a provider, and used so many tokens. */
  add(tokens: number): void {
    this.#reached = true;
    this.#tokens += tokens;
  }

  /** The request is over; one that reached no provider is given back. */
  end(): void {
    if (this.#reached) this.ticket.settle(this.#tokens);
    else this.ticket.giveBack();
  }
}
