import { Inject, Injectable } from '@nestjs/common';
import type { Clock } from '../common/time/clock.js';
import { CLOCK } from '../contracts/ports.js';
import { GatewayLog } from '../observability/log/gateway-log.js';
import type { Candidate } from '../routing/candidate.js';
import { isClosed } from '../upstreams/concurrency/claimable.js';
import { type Claim, ConcurrencyService } from '../upstreams/concurrency/concurrency.service.js';
import { mayWait } from '../upstreams/concurrency/may-wait.js';
import type { Unserved, UnservedReason, Waiter } from '../upstreams/concurrency/waiter.js';
import type { SharedClaims } from '../upstreams/shared/shared-claims.js';
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
    if (mayWait(exchange.model)) exchange.waiter ??= this.waiterOf(exchange);
    const { model, waiter } = exchange;
    const home =
      model.affinityWaitMs > 0 && tried === null ? homeOf(exchange, candidates, this.clock.now()) : null;
    if (home !== null && waiter !== null) return this.#claimHome(exchange, home, waiter, candidates);
    return this.#claimAny(exchange, candidates, tried);
  }

  #claimAny(
    exchange: GatewayExchange,
    candidates: readonly Candidate[],
    tried: ReadonlySet<Upstream> | null,
  ): ClaimResult | Promise<ClaimResult> {
    const { shared } = this.concurrency;
    if (shared !== null) return this.#shared(exchange, candidates, tried, shared);
    const claim = this.concurrency.claim(candidates, tried, exchange.waiter);
    return claim ?? this.#wait(exchange, candidates, tried);
  }

  /** The upstream of the conversation, also where another one is free; the usual order when it is not to be had in time. */
  async #claimHome(
    exchange: GatewayExchange,
    home: Candidate,
    waiter: Waiter,
    candidates: readonly Candidate[],
  ): Promise<ClaimResult> {
    const { shared } = this.concurrency;
    const claim = await (shared ?? this.concurrency).claim([home], null, waiter);
    if (claim !== null) return unlessGivenUp(exchange, claim);
    const limitMs = Math.min(exchange.model.affinityWaitMs, exchange.deadlineAt - this.clock.now());
    const waiting = this.concurrency.waitFor(home, waiter, limitMs);
    if (waiting !== null) {
      const result = await (waiting.result instanceof Promise
        ? this.attend(exchange, waiting.result)
        : waiting.result);
      if (!('unserved' in result) || ENDS_IT.has(result.unserved)) return result;
    }
    return await this.#claimAny(exchange, candidates, null);
  }

  /** Other replicas have a say in it. */
  async #shared(
    exchange: GatewayExchange,
    candidates: readonly Candidate[],
    tried: ReadonlySet<Upstream> | null,
    shared: SharedClaims,
  ): Promise<ClaimResult> {
    const claim = await shared.claim(candidates, tried, exchange.waiter);
    if (claim !== null) return unlessGivenUp(exchange, claim);
    return exchange.givenUp === null ? this.#wait(exchange, candidates, tried) : { unserved: 'left' };
  }

  /** Null where its model has no queue. */
  waiterOf(exchange: GatewayExchange): Waiter | null {
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
    // An answer that has begun is only continued by what is free.
    const begun = exchange.relayed?.begun === true;
    const waiting = this.concurrency.wait(candidates, tried, exchange.waiter, limitMs, !begun);
    if (waiting === null) return null;
    exchange.waiter = waiting.waiter;
    return waiting.result instanceof Promise ? this.attend(exchange, waiting.result) : waiting.result;
  }

  /** Waits as long as the client stays. */
  async attend<T>(exchange: GatewayExchange, result: Promise<T>): Promise<T> {
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

/** After these nothing else is to be tried. */
const ENDS_IT: ReadonlySet<UnservedReason> = new Set(['left', 'shutting_down']);

/**
 * The upstream that served the conversation before, where it is worth waiting for: it does not rest, nothing is to be waited
 * out before, and no better tier has a free slot.
 */
function homeOf(
  { attachment }: GatewayExchange,
  candidates: readonly Candidate[],
  now: number,
): Candidate | null {
  const home = attachment?.home ?? null;
  // Trap: claimed alone, one that rests would take a trial before all that are healthy.
  if (home === null || home.entry.spill !== null || isClosed(home, now)) return null;
  for (const candidate of candidates) {
    if (candidate === home) return home;
    const { seat, slots } = candidate.upstream;
    if (!isClosed(candidate, now) && (seat ?? slots).free) return null;
  }
  return null;
}

/** The client may have gone while it was claimed. */
function unlessGivenUp(exchange: GatewayExchange, claim: Claim<Candidate>): ClaimResult {
  if (exchange.givenUp === null) return claim;
  claim.lease.release();
  return { unserved: 'left' };
}
