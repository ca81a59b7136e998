import type { AttemptResult } from '../contracts/exchange.js';
import type { CounterSeries } from '../observability/metrics/series.js';
import type { QuotaTicket } from '../quotas/quota-ticket.js';
import type { Spending } from '../quotas/spending.js';
import { tokensOfBytes } from '../quotas/token-estimate.js';
import type { GatewayAttempt } from './gateway-attempt.js';
import { askForUsage } from './usage-request.js';
import type { UsageObserver } from './usage.observer.js';

/** Answers with one of these cost no tokens, unless the provider says so. */
const REFUSED: ReadonlySet<AttemptResult> = new Set(['4xx', '429', '402', '5xx']);

/** What one attempt means for the quotas of its candidate and of its consumer. Lives with the attempt; ends once. */
export class AttemptQuota {
  answerBytes = 0;
  /** The client did not ask for the usage that the provider was asked for. */
  withholdsUsage = false;
  #requestBytes = 0;
  #over = false;

  constructor(
    private readonly ticket: QuotaTicket | null,
    private readonly spending: Spending | null,
    /** Null where nothing is generated: only what the provider names counts. */
    private readonly estimated: CounterSeries | null,
  ) {}

  get countsTokens(): boolean {
    return this.ticket?.countsTokens === true || this.spending?.countsTokens === true;
  }

  /** When nobody changes the request any more. */
  shaped(attempt: GatewayAttempt, mayAsk: boolean): void {
    if (!this.countsTokens) return;
    if (mayAsk) this.withholdsUsage = askForUsage(attempt.body);
    this.#requestBytes = attempt.body.byteLength;
  }

  /** The attempt is over. `sent` = the provider got at least a part of the request. */
  end(sent: boolean, result: AttemptResult, usage: UsageObserver): void {
    if (this.#over) return;
    if (!sent) {
      this.giveBack();
      return;
    }
    this.#over = true;
    const tokens = this.countsTokens ? this.#tokens(result, usage) : 0;
    this.ticket?.settle(tokens);
    this.spending?.add(tokens);
  }

  /** The provider never got the request. Does nothing to an attempt that has ended. */
  giveBack(): void {
    if (this.#over) return;
    this.#over = true;
    this.ticket?.giveBack();
  }

  #tokens(result: AttemptResult, usage: UsageObserver): number {
    const { input, output } = usage.tokens;
    const told = Math.ceil(input + output);
    if (told > 0 && usage.complete) return told;
    if (REFUSED.has(result) || this.estimated === null) return told;
    // Anthropic says what a request costs when its stream begins, and what the answer costs only at its end.
    const estimate =
      told > 0
        ? Math.max(tokensOfBytes(this.answerBytes) - output, 0)
        : tokensOfBytes(this.#requestBytes + this.answerBytes);
    this.estimated.add(estimate);
    return told + estimate;
  }
}
