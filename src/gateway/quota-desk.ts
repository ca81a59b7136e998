import { Injectable } from '@nestjs/common';
import { quotaExhausted, stateUnavailable } from '../common/errors/catalogue.js';
import { QuotaMetrics } from '../observability/metrics/quota.metrics.js';
import type { CounterSeries } from '../observability/metrics/series.js';
import type { QuotaSet } from '../quotas/quota-set.js';
import type { QuotaTicket } from '../quotas/quota-ticket.js';
import { Spending } from '../quotas/spending.js';
import { tokensToReserve } from '../quotas/token-estimate.js';
import type { Candidate } from '../routing/candidate.js';
import { AttemptQuota } from './attempt-quota.js';
import type { CompiledTarget } from './compiled-target.js';
import type { GatewayExchange } from './gateway-exchange.js';

/** Reserves of the quotas what one attempt may use, before it is sent. */
@Injectable()
export class QuotaDesk {
  readonly #estimated = new Map<string, CounterSeries>();

  constructor(private readonly metrics: QuotaMetrics) {}

  /**
   * Null where no quota counts the attempt. At once, so that nobody comes between a claim and its reservation, unless other
   * replicas have a say. Never rejects.
   */
  take(
    exchange: GatewayExchange,
    { candidate, quota }: CompiledTarget,
  ): AttemptQuota | null | 'used up' | Promise<AttemptQuota | 'used up'> {
    const { spending } = exchange;
    if (quota === null) return spending === null ? null : this.#quotaOf(null, exchange, candidate);
    const taking = quota.take(reservation(quota, exchange));
    if (!(taking instanceof Promise))
      return taking === null ? 'used up' : this.#quotaOf(taking, exchange, candidate);
    return taking.then((ticket) =>
      ticket === null ? 'used up' : this.#quotaOf(ticket, exchange, candidate),
    );
  }

  #quotaOf(ticket: QuotaTicket | null, exchange: GatewayExchange, { upstream }: Candidate): AttemptQuota {
    const estimated = exchange.input.operation.generates ? this.#estimatedAt(upstream.id) : null;
    return new AttemptQuota(ticket, exchange.spending, estimated);
  }

  /**
   * For a request of somebody who has quotas: it spends of them until it is over. Throws, or rejects with, the 429 where they
   * are used up. `whose` begins its message. Null: at once.
   */
  open(exchange: GatewayExchange, quotas: QuotaSet, whose: string): Promise<void> | null {
    const taking = quotas.take(reservation(quotas, exchange));
    if (taking instanceof Promise)
      return taking.then((ticket) => void (exchange.spending = spendingOf(ticket, quotas, whose)));
    exchange.spending = spendingOf(taking, quotas, whose);
    return null;
  }

  #estimatedAt(upstream: string): CounterSeries {
    let series = this.#estimated.get(upstream);
    if (series === undefined)
      this.#estimated.set(upstream, (series = this.metrics.estimatedTokens(upstream)));
    return series;
  }
}

function reservation({ countsTokens }: QuotaSet, { input, body }: GatewayExchange): number {
  return countsTokens && input.operation.generates ? tokensToReserve(body) : 0;
}

function spendingOf(ticket: QuotaTicket | null, quotas: QuotaSet, whose: string): Spending {
  if (ticket !== null) return new Spending(ticket);
  const closedMs = quotas.closedMs();
  // Other replicas could not be asked in time.
  throw closedMs === 0 ? stateUnavailable() : quotaExhausted(`${whose} quota is used up`, closedMs);
}
