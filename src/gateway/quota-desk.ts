import { Injectable } from '@nestjs/common';
import { quotaExhausted } from '../common/errors/catalogue.js';
import { QuotaMetrics } from '../observability/metrics/quota.metrics.js';
import type { CounterSeries } from '../observability/metrics/series.js';
import type { QuotaSet } from '../quotas/quota-set.js';
import { Spending } from '../quotas/spending.js';
import { tokensToReserve } from '../quotas/token-estimate.js';
import { AttemptQuota } from './attempt-quota.js';
import type { CompiledTarget } from './compiled-target.js';
import type { GatewayExchange } from './gateway-exchange.js';

/** Reserves of the quotas what one attempt may use, before it is sent. */
@Injectable()
export class QuotaDesk {
  readonly #estimated = new Map<string, CounterSeries>();

  constructor(private readonly metrics: QuotaMetrics) {}

  /** Null where no quota counts the attempt; synchronous, so that nobody comes between a claim and its reservation. */
  take(exchange: GatewayExchange, target: CompiledTarget): AttemptQuota | null | 'used up' {
    const { quota, candidate } = target;
    const { spending } = exchange;
    if (quota === null && spending === null) return null;
    const tokens = quota?.countsTokens === true ? tokensToReserve(exchange.body) : 0;
    const ticket = quota?.reserve(tokens) ?? null;
    if (quota !== null && ticket === null) return 'used up';
    return new AttemptQuota(ticket, spending, this.#estimatedAt(candidate.upstream.id));
  }

  /**
   * For a request of somebody who has quotas: it spends of them until it is over. Throws the 429 where they are used up.
   * `whose` begins its message.
   */
  open(exchange: GatewayExchange, quotas: QuotaSet, whose: string): void {
    const ticket = quotas.reserve(quotas.countsTokens ? tokensToReserve(exchange.body) : 0);
    if (ticket === null) throw quotaExhausted(`${whose} quota is used up`, quotas.closedMs());
    exchange.spending = new Spending(ticket);
  }

  #estimatedAt(upstream: string): CounterSeries {
    let series = this.#estimated.get(upstream);
    if (series === undefined)
      this.#estimated.set(upstream, (series = this.metrics.estimatedTokens(upstream)));
    return series;
  }
}
