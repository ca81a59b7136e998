import { Inject, Injectable } from '@nestjs/common';
import type { Clock } from '../common/time/clock.js';
import { CLOCK } from '../contracts/ports.js';
import { GatewayLog } from '../observability/log/gateway-log.js';
import type { Candidate } from '../routing/candidate.js';
import type { Claim } from '../upstreams/concurrency/concurrency.service.js';
import { KeyWalk } from '../upstreams/keys/key-walk.js';
import type { UpstreamKeys } from '../upstreams/keys/upstream-keys.js';
import type { Lease } from '../upstreams/lease.js';
import type { HeldAnswer } from './answer/passable-answer.js';
import type { AttemptQuota } from './attempt-quota.js';
import type { AttemptOutcome } from './attempt-outcome.js';
import { AttemptRunner } from './attempt.runner.js';
import type { CompiledTarget } from './compiled-target.js';
import type { Ending } from './ending.js';
import { retold } from './exposure.js';
import type { GatewayExchange } from './gateway-exchange.js';
import { errorClassOf, OutcomeBook } from './outcome-book.js';
import { PipelineCompiler } from './pipeline.compiler.js';
import { QuotaDesk } from './quota-desk.js';
import { queueMs } from './queue-standing.js';
import type { Relief } from './relief.js';
import type { ResponseSink } from './response-sink.js';
import { TooLong } from './too-long.js';

/** What is tried next, and what was taken of its quotas. */
interface Next {
  readonly target: CompiledTarget;
  readonly quota: AttemptQuota | null;
}

/** All attempts of one request on one claimed upstream: one, or one after the other through the keys of a pool. */
@Injectable()
export class UpstreamAttempts {
  constructor(
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly runner: AttemptRunner,
    private readonly book: OutcomeBook,
    private readonly quotas: QuotaDesk,
    private readonly pipelines: PipelineCompiler,
    private readonly log: GatewayLog,
  ) {}

  /** Null: none answered, the next upstream may be tried. Gives the slot back when the upstream is really free. */
  async run(
    exchange: GatewayExchange,
    { candidate, lease }: Claim<Candidate>,
    maxAttempts: number,
    sink: ResponseSink,
    relief: Relief | null,
  ): Promise<Ending | null> {
    try {
      const { keeper, keys } = candidate.upstream;
      if (keeper !== null) endWithSlot(exchange, lease);
      if (keys !== null)
        return await this.#throughKeys(exchange, candidate, lease, maxAttempts, sink, relief, keys);
      // Trap: a plugin's `appliesTo` may throw here, after the slot was taken.
      const target = this.pipelines.target(candidate, null, exchange.input.operation, exchange.id);
      const taking = this.quotas.take(exchange, target);
      const quota = taking instanceof Promise ? await taking : taking;
      if (quota === 'used up' || isLeft(exchange, quota)) return null;
      const outcome = await this.#attempt(exchange, { target, quota }, lease.trial, sink, relief);
      this.book.add(exchange, target, lease, outcome, null);
      if (outcome.crash !== undefined) throw outcome.crash.error;
      if (outcome.suspended === true) exchange.relayed?.suspend(outcome, target);
      return ended(exchange, outcome) ? { outcome, target, status: outcome.status } : null;
    } finally {
      lease.release();
    }
  }

  async #throughKeys(
    exchange: GatewayExchange,
    candidate: Candidate,
    lease: Lease,
    maxAttempts: number,
    sink: ResponseSink,
    relief: Relief | null,
    keys: UpstreamKeys,
  ): Promise<Ending | null> {
    const { errors } = candidate.upstream.config.provider;
    const preferred = exchange.issuingKey ?? exchange.attachment?.keyAt(candidate) ?? null;
    const walk = new KeyWalk(keys, errors?.serverError.retries ?? 0, preferred);
    for (let next = await this.#next(exchange, candidate, walk); next !== null;) {
      const { target } = next;
      const outcome = await this.#attempt(exchange, next, lease.trial, sink, relief);
      next = null;
      const { failure, held } = outcome;
      if (failure === undefined) walk.stop();
      else {
        walk.fail({ class: errorClassOf(failure), timedOut: failure.timedOut ?? false });
        const last = exchange.records.length + 1 >= maxAttempts || this.clock.now() >= exchange.deadlineAt;
        // Each upstream has its part in an answer once.
        const begun = outcome.answered || outcome.suspended === true;
        if (last || begun || exchange.givenUp !== null) walk.stop();
        // Before it is booked: the ladder takes its step when the walk is over.
        else next = await this.#next(exchange, candidate, walk);
      }
      this.book.add(exchange, target, lease, outcome, walk);
      if (outcome.crash !== undefined) throw outcome.crash.error;
      if (outcome.suspended === true) exchange.relayed?.suspend(outcome, target);
      if (ended(exchange, outcome)) return { outcome, target, status: outcome.status };
      if (held !== undefined) return this.#held(exchange, target, outcome, held, sink);
    }
    return null;
  }

  /** The walk's key, or the first behind it whose quotas let the request in: that is taken of them. Null: the walk is over. */
  async #next(exchange: GatewayExchange, candidate: Candidate, walk: KeyWalk): Promise<Next | null> {
    for (let { key } = walk; key !== null; key = walk.skip()) {
      const target = this.pipelines.target(candidate, key, exchange.input.operation, exchange.id);
      const taking = this.quotas.take(exchange, target);
      const quota = taking instanceof Promise ? await taking : taking;
      if (quota === 'used up') continue;
      if (!isLeft(exchange, quota)) return { target, quota };
      walk.stop();
    }
    return null;
  }

  #attempt(
    exchange: GatewayExchange,
    { quota, target }: Next,
    trial: boolean,
    sink: ResponseSink,
    relief: Relief | null,
  ): Promise<AttemptOutcome> {
    if (this.log.debugEnabled)
      this.log.claimed(exchange.id, target.logged, String(target.candidate.upstream.slots), trial);
    return this.runner.run(exchange, target, sink, quota, relief);
  }

  /** The client's own mistake passes at once; a prompt that is too long may still fit a larger model. */
  #held(
    exchange: GatewayExchange,
    target: CompiledTarget,
    { failure }: AttemptOutcome,
    held: HeldAnswer,
    sink: ResponseSink,
  ): Ending | null {
    const first = exchange.tooLong;
    if (failure?.class !== 'context_length')
      return passOn(exchange, first?.target ?? target, first?.held ?? held, sink, this.clock);
    const tooLong = (exchange.tooLong ??= new TooLong(held, target));
    tooLong.exceeded(target.candidate.upstream.config.contextWindow);
    return null;
  }
}

/** The client may have gone while quotas were asked for. */
function isLeft({ givenUp }: GatewayExchange, quota: AttemptQuota | null): boolean {
  if (givenUp === null) return false;
  quota?.giveBack();
  return true;
}

/** Another replica may use the slot by now: what runs on it is a break. */
function endWithSlot(exchange: GatewayExchange, lease: Lease): void {
  const revoked = () => exchange.giveUp('slot_lost');
  lease.onRevoked = revoked;
}

/** Sends a provider's error to the client after all. */
export function passOn(
  exchange: GatewayExchange,
  target: CompiledTarget,
  { status, headers, body }: HeldAnswer,
  sink: ResponseSink,
  clock: Clock,
): Ending {
  exchange.attachment?.answered(target.candidate, target.key?.id ?? null);
  sink.head(status, retold(headers, exchange.records, queueMs(exchange, clock)));
  sink.end(body);
  return { outcome: { result: status >= 500 ? '5xx' : '4xx', answered: true, status }, target, status };
}

function ended({ givenUp }: GatewayExchange, { answered }: AttemptOutcome): boolean {
  return answered || givenUp === 'client_gone';
}
