import { Inject, Injectable } from '@nestjs/common';
import type { Clock } from '../common/time/clock.js';
import { CLOCK } from '../contracts/ports.js';
import { GatewayLog } from '../observability/log/gateway-log.js';
import type { Candidate } from '../routing/candidate.js';
import { type Claim, ConcurrencyService } from '../upstreams/concurrency/concurrency.service.js';
import type { Unserved } from '../upstreams/concurrency/waiter.js';
import type { Upstream } from '../upstreams/upstream.js';
import type { GatewayExchange } from './gateway-exchange.js';
import { standingOf } from './queue-standing.js';

/** Null: nothing was free, and there is nothing to wait for. */
export type ClaimResult = Claim<Candidate> | Unserved | null;

/**
 * Claims upstreams for exchanges, and lets those wait whose model has a queue. Keeps nothing: what an exchange waited is in
 * its waiter.
 */
@Injectable()
export class ClaimDesk {
  constructor(
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly concurrency: ConcurrencyService,
    private readonly log: GatewayLog,
  ) {}

  /** At once where a slot is free, or where nobody can or wants to wait. Never rejects. */
  claim(
    exchange: GatewayExchange,
    candidates: readonly Candidate[],
    tried: ReadonlySet<Upstream> | null,
  ): ClaimResult | Promise<ClaimResult> {
    if (exchange.model.queue !== null) exchange.waiter ??= this.#waiterOf(exchange);
    const claim = this.concurrency.claim(candidates, tried, exchange.waiter);
    return claim ?? this.#wait(exchange, candidates, tried);
  }

  #waiterOf(exchange: GatewayExchange) {
    return this.concurrency.waiterFor(exchange.model, {
      bytes: exchange.body.byteLength,
      ...standingOf(exchange),
    });
  }

  #wait(
    exchange: GatewayExchange,
    candidates: readonly Candidate[],
    tried: ReadonlySet<Upstream> | null,
  ): ClaimResult | Promise<ClaimResult> {
    const limitMs = exchange.deadlineAt - this.clock.now();
    const waiting = this.concurrency.wait(candidates, tried, exchange.waiter, limitMs);
    if (waiting === null) return null;
    exchange.waiter = waiting.waiter;
    return waiting.result instanceof Promise ? this.#attend(exchange, waiting.result) : waiting.result;
  }

  async #attend(
    exchange: GatewayExchange,
    result: Promise<Claim<Candidate> | Unserved>,
  ): Promise<Claim<Candidate> | Unserved> {
    const { waiter } = exchange;
    if (waiter === null) return result;
    const position = waiter.position();
    this.log.queued(exchange.id, exchange.modelName, position);
    // Named first: see the trap in AttemptRun.
    const left = () => this.concurrency.leave(waiter);
    exchange.onGivenUp = left;
    try {
      return await result;
    } finally {
      exchange.onGivenUp = null;
    }
  }
}
