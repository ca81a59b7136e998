import { Inject, Injectable } from '@nestjs/common';
import type { Clock } from '../common/time/clock.js';
import type { ErrorClass } from '../contracts/error-class.js';
import type { Attempt, AttemptFailure, AttemptResult } from '../contracts/exchange.js';
import { CLOCK } from '../contracts/ports.js';
import { type Following, GatewayLog } from '../observability/log/gateway-log.js';
import { GatewayMetrics } from '../observability/metrics/gateway.metrics.js';
import { type Rest, restOf } from '../upstreams/failures/rest-of.js';
import type { KeyWalk } from '../upstreams/keys/key-walk.js';
import type { Lease } from '../upstreams/lease.js';
import type { AttemptOutcome } from './attempt-outcome.js';
import type { CompiledTarget } from './compiled-target.js';
import type { GatewayExchange } from './gateway-exchange.js';
import { PipelineCompiler } from './pipeline.compiler.js';
import { PluginGuard } from './plugin.guard.js';

type ClassedFailure = AttemptFailure & { readonly class: ErrorClass };

/**
 * Books what came of an attempt: for the streak and the rests of upstream and key, the metrics, the log and the plugins.
 */
@Injectable()
export class OutcomeBook {
  constructor(
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly pipelines: PipelineCompiler,
    private readonly guard: PluginGuard,
    private readonly metrics: GatewayMetrics,
    private readonly log: GatewayLog,
  ) {}

  /** `walk`: of the keys, where there is a pool; it has gone on already where the attempt failed. */
  add(
    exchange: GatewayExchange,
    target: CompiledTarget,
    lease: Lease,
    outcome: AttemptOutcome,
    walk: KeyWalk | null,
  ): void {
    const { result, failure } = outcome;
    const { upstream } = target.candidate;
    const { key } = target.logged;
    const provider = upstream.config.provider.id;
    target.series.count(result);
    exchange.records.push({
      upstream: upstream.id,
      provider,
      ...(key === undefined || target.key === null ? {} : { key: target.key.id }),
      result,
      ...(failure?.status === undefined ? {} : { status: failure.status }),
    });
    this.#time(target, outcome);
    if (result === 'ok') {
      upstream.succeeded();
      target.key?.worked(upstream.id);
      exchange.attachment?.served(target.candidate, target.key?.id ?? null);
    }
    const failed = failure !== undefined && result !== 'cancelled';
    // Where the provider was not even asked, nothing is decided.
    if (lease.trial) this.log.tried(exchange.id, target.logged, result, failed && failure.ours !== true);
    if (!failed) return;
    const classed: ClassedFailure = { ...failure, class: errorClassOf(failure) };
    this.metrics.failed(upstream.id, provider, classed.class);
    const following =
      walk === null
        ? this.#stepped(exchange, target, lease, classed, outcome)
        : this.#walked(exchange, target, lease, classed, outcome, walk);
    // What only the client can mend is no failure of anybody here.
    if (classed.class === 'bad_request') return;
    this.log.failedOver(exchange.id, target.logged, classed, following);
    if (outcome.attempt !== undefined) this.#tellFailover(exchange, outcome.attempt, classed);
  }

  /** Without a pool: each failure is one of the upstream. */
  #stepped(
    exchange: GatewayExchange,
    { candidate }: CompiledTarget,
    lease: Lease,
    failure: ClassedFailure,
    { answered }: AttemptOutcome,
  ): Following {
    const next = answered ? 'answer interrupted' : 'failover';
    // A 4xx speaks of the request, even where it cannot be the client's answer.
    if (failure.class === 'bad_request' || this.#isOurs(exchange, failure))
      return { restMs: 0, resting: 'backoff', next };
    const { backoff } = candidate.upstream;
    const restMs = backoff?.failed(this.clock.now(), lease.startedAt, failure.retryAfterMs, lease.trial) ?? 0;
    return { restMs, resting: 'backoff', next };
  }

  /** With a pool: what rests is what the class says, and the ladder takes one step when the walk is over. */
  #walked(
    exchange: GatewayExchange,
    target: CompiledTarget,
    lease: Lease,
    failure: ClassedFailure,
    { answered }: AttemptOutcome,
    walk: KeyWalk,
  ): Following {
    const { upstream } = target.candidate;
    const rules = upstream.config.provider.errors;
    const windowMs = target.key?.gate?.turnsInMs() ?? null;
    const rest = rules === null ? null : restOf(failure.class, rules, failure.retryAfterMs, windowMs);
    if (rest !== null) this.#rest(target, rest);
    const next = answered
      ? 'answer interrupted'
      : walk.key === null
        ? 'failover'
        : walk.retried
          ? 'retry'
          : 'next key';
    if (rest !== null)
      return { restMs: rest.ms, resting: rest.scope === 'upstream' ? 'upstream' : 'key', next };
    const stepping = walk.key === null && (rules === null || walk.broken);
    if (!stepping || this.#isOurs(exchange, failure)) return { restMs: 0, resting: 'backoff', next };
    const asked = rules === null || failure.class === 'server_error' ? failure.retryAfterMs : undefined;
    const restMs = upstream.backoff?.failed(this.clock.now(), lease.startedAt, asked, lease.trial) ?? 0;
    return { restMs, resting: 'backoff', next };
  }

  #rest({ candidate, key }: CompiledTarget, { scope, ms }: Rest): void {
    const { upstream } = candidate;
    const now = this.clock.now();
    if (scope === 'upstream') upstream.gone(now, ms);
    else if (scope === 'key') key?.restEverywhere(now, ms);
    else key?.restAt(upstream.id, now, ms);
  }

  /** No fault of the upstream: it was never asked, or the deadline of the request left it less than its own time. */
  #isOurs({ records, deadlineAt, waiter }: GatewayExchange, { ours, timedOut }: AttemptFailure): boolean {
    if (ours === true) return true;
    // Where all of its time was its own, a deadline is what the file gives an upstream to answer in.
    const shared = records.length > 1 || (waiter?.waitedMs(this.clock.now()) ?? 0) > 0;
    return timedOut === true && shared && this.clock.now() >= deadlineAt;
  }

  /** A failure counts as the longest wait there is. */
  #time({ candidate }: CompiledTarget, { failure, firstByteMs, held, result }: AttemptOutcome): void {
    const { config, firstByte } = candidate.upstream;
    if (failure?.ours === true) return;
    if (failure !== undefined && held === undefined && result !== 'cancelled')
      firstByte.add(config.firstByteTimeoutMs);
    else if (firstByteMs !== undefined) firstByte.add(firstByteMs);
  }

  #tellFailover(exchange: GatewayExchange, attempt: Attempt, failure: AttemptFailure): void {
    for (const { id, hooks } of this.pipelines.onFailover ?? []) {
      this.guard.quietly(exchange.id, id, 'onFailover', () => hooks.onFailover(exchange, attempt, failure));
    }
  }
}

/** By its reader, else by the label of the attempt. */
export function errorClassOf({ class: name, result }: AttemptFailure): ErrorClass {
  return name ?? BY_RESULT.get(result) ?? 'server_error';
}

const BY_RESULT: ReadonlyMap<AttemptResult, ErrorClass> = new Map([
  ['429', 'rate_limited'],
  ['402', 'quota_exhausted'],
  ['4xx', 'bad_request'],
]);
