import { Inject, Injectable } from '@nestjs/common';
import type { Clock } from '../common/time/clock.js';
import type { Attempt, AttemptFailure } from '../contracts/exchange.js';
import { CLOCK } from '../contracts/ports.js';
import { GatewayLog } from '../observability/log/gateway-log.js';
import type { Lease } from '../upstreams/lease.js';
import type { AttemptOutcome } from './attempt-run.js';
import type { CompiledTarget } from './compiled-target.js';
import type { GatewayExchange } from './gateway-exchange.js';
import { PipelineCompiler } from './pipeline.compiler.js';
import { PluginGuard } from './plugin.guard.js';

/** Books what came of an attempt: for its upstream's streak and rest, the metrics, the log and the plugins. */
@Injectable()
export class OutcomeBook {
  constructor(
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly pipelines: PipelineCompiler,
    private readonly guard: PluginGuard,
    private readonly log: GatewayLog,
  ) {}

  add(exchange: GatewayExchange, target: CompiledTarget, lease: Lease, outcome: AttemptOutcome): void {
    const { result, failure } = outcome;
    const { upstream } = target.candidate;
    target.series.count(result);
    exchange.attempts.push({
      upstream: upstream.id,
      provider: upstream.config.provider.id,
      result,
      ...(failure?.status === undefined ? {} : { status: failure.status }),
    });
    this.#time(target, outcome);
    if (result === 'ok') upstream.backoff?.succeeded();
    const failed = failure !== undefined && result !== 'cancelled';
    if (lease.trial) this.log.tried(exchange.id, target.logged, result, failed);
    if (!failed) return;
    const restMs =
      upstream.backoff?.failed(this.clock.now(), lease.startedAt, failure.retryAfterMs, lease.trial) ?? 0;
    this.log.failedOver(exchange.id, target.logged, failure, restMs, outcome.answered);
    if (outcome.attempt !== undefined) this.#tellFailover(exchange, outcome.attempt, failure);
  }

  /** A failure counts as the longest wait there is. */
  #time({ candidate }: CompiledTarget, { failure, firstByteMs, result }: AttemptOutcome): void {
    const { config, firstByte } = candidate.upstream;
    if (failure !== undefined && result !== 'cancelled') firstByte.add(config.firstByteTimeoutMs);
    else if (firstByteMs !== undefined) firstByte.add(firstByteMs);
  }

  #tellFailover(exchange: GatewayExchange, attempt: Attempt, failure: AttemptFailure): void {
    for (const { id, hooks } of this.pipelines.onFailover ?? []) {
      this.guard.quietly(exchange.id, id, 'onFailover', () => hooks.onFailover(exchange, attempt, failure));
    }
  }
}
