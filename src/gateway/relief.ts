import type { Candidate } from '../routing/candidate.js';
import type { Claim, ConcurrencyService } from '../upstreams/concurrency/concurrency.service.js';
import type { Waiter } from '../upstreams/concurrency/waiter.js';
import type { SharedClaims } from '../upstreams/shared/shared-claims.js';
import type { Upstream } from '../upstreams/upstream.js';
import type { GatewayExchange } from './gateway-exchange.js';

/**
 * The next upstream of an exchange, claimed while the present one still keeps its slot: a silent one is given up only
 * when somebody else has been found. Lives for the attempts on one upstream; what it took and nobody used
 * goes back.
 */
export class Relief {
  #claim: Claim<Candidate> | null = null;
  #asking = false;
  #over = false;

  constructor(
    private readonly concurrency: ConcurrencyService,
    private readonly exchange: Pick<GatewayExchange, 'records'> & { readonly waiter?: Waiter | null },
    private readonly candidates: readonly Candidate[],
    /** The one to be relieved, and those before it. */
    private readonly tried: ReadonlySet<Upstream>,
    private readonly maxAttempts: number,
  ) {}

  /**
   * Claims the next one; false where none is free, or where no further attempt is allowed. `found`: other replicas had to be
   * asked, and there is one after all.
   */
  take(found: () => void = () => {}): boolean {
    // The attempt that is to be relieved is not among them yet.
    if (this.exchange.records.length + 1 >= this.maxAttempts) return false;
    if (this.#claim === null) {
      const { shared } = this.concurrency;
      const waiter = this.exchange.waiter ?? null;
      if (shared === null) this.#claim = this.concurrency.claim(this.candidates, this.tried, waiter);
      else if (!this.#asking) void this.#ask(shared, waiter, found);
    }
    return this.#claim !== null;
  }

  async #ask(shared: SharedClaims, waiter: Waiter | null, found: () => void): Promise<void> {
    this.#asking = true;
    const claim = await shared.claim(this.candidates, this.tried, waiter);
    this.#asking = false;
    if (claim === null) return;
    this.#claim = claim;
    if (this.#over) this.release();
    else found();
  }

  /** Hands the claim over: whoever asked releases it. */
  use(): Claim<Candidate> | null {
    this.#over = true;
    const claim = this.#claim;
    this.#claim = null;
    return claim;
  }

  release(): void {
    this.use()?.lease.release();
  }
}
