import { Inject, Injectable } from '@nestjs/common';
import { GatewayError } from '../common/errors/gateway-error.js';
import type { Clock } from '../common/time/clock.js';
import type { Attempt } from '../contracts/exchange.js';
import { CLOCK } from '../contracts/ports.js';
import { GatewayLog } from '../observability/log/gateway-log.js';
import type { AttemptQuota } from './attempt-quota.js';
import { AnswerStages } from './answer-stages.js';
import type { AttemptOutcome } from './attempt-outcome.js';
import { type AttemptDependencies, AttemptRun } from './attempt-run.js';
import { ConsumerMetrics } from '../observability/metrics/consumer.metrics.js';
import type { GatewayAttempt } from './gateway-attempt.js';
import type { CompiledTarget } from './compiled-target.js';
import type { GatewayExchange } from './gateway-exchange.js';
import { AttemptShaper } from './attempt.shaper.js';
import type { Relief } from './relief.js';
import type { ResponseSink } from './response-sink.js';
import type { Shaping } from './shaping.js';
import { stageEnd } from './stage-wait.js';

const CANCELLED: AttemptOutcome = { result: 'cancelled', answered: false, status: 0 };

/** Shapes the request of one attempt and runs it to its end, when the upstream is free; its time is counted. */
@Injectable()
export class AttemptRunner {
  readonly #dependencies: AttemptDependencies;

  constructor(
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly shaper: AttemptShaper,
    stages: AnswerStages,
    consumers: ConsumerMetrics,
    log: GatewayLog,
  ) {
    this.#dependencies = {
      clock,
      wallClockMs: () => Date.now(),
      openPipeline: (target, attempt, usage, last, failures) =>
        stages.open(target, attempt, usage, last, failures),
      onUsage: ({ consumer, modelName }, { input, output }) => {
        if (consumer !== null) consumer.useIn(consumers).tokens(modelName, input, output);
      },
      onCrash: (exchange, error) => {
        if (!(error instanceof GatewayError)) log.unexpected(exchange.id, 'an attempt', error);
      },
    };
  }

  /** Rejects where an error of this side, such as a plugin's, comes before anything was sent: that was no attempt. */
  run(
    exchange: GatewayExchange,
    target: CompiledTarget,
    sink: ResponseSink,
    quota: AttemptQuota | null = null,
    relief: Relief | null = null,
  ): Promise<AttemptOutcome> {
    const startedAt = this.clock.now();
    try {
      const attempt = this.shaper.make(exchange, target, exchange.attempts.length + 1);
      attempt.quota = quota;
      const shaping = this.shaper.shape(attempt, target);
      // Nearly always: nothing of this side waits for the answer then but whoever called.
      if (shaping === null) return this.#send(exchange, target, attempt, startedAt, sink, relief);
      return this.#onceShaped(exchange, target, attempt, startedAt, sink, relief, shaping);
    } catch (error) {
      quota?.giveBack();
      return Promise.reject(error as Error);
    }
  }

  async #onceShaped(
    exchange: GatewayExchange,
    target: CompiledTarget,
    attempt: GatewayAttempt,
    startedAt: number,
    sink: ResponseSink,
    relief: Relief | null,
    shaping: Shaping,
  ): Promise<AttemptOutcome> {
    let sending: Promise<AttemptOutcome>;
    try {
      const { requestTimeoutMs } = target.candidate.upstream.config;
      const ownMs = requestTimeoutMs > 0 ? requestTimeoutMs : Infinity;
      const dueAt = Math.min(exchange.deadlineAt, startedAt + ownMs);
      const end = await stageEnd(shaping.done, exchange, dueAt, this.clock);
      if (end !== 'done') {
        shaping.abandon();
        this.#unsent(target, attempt.quota, startedAt);
        return end === 'given_up' ? CANCELLED : lateOutcome(target, attempt);
      }
      sending = this.#send(exchange, target, attempt, startedAt, sink, relief);
    } catch (error) {
      attempt.quota?.giveBack();
      throw error;
    }
    return sending;
  }

  #send(
    exchange: GatewayExchange,
    target: CompiledTarget,
    attempt: GatewayAttempt,
    startedAt: number,
    sink: ResponseSink,
    relief: Relief | null,
  ): Promise<AttemptOutcome> {
    attempt.quota?.shaped(attempt, target.asksUsage);
    return new AttemptRun(this.#dependencies, exchange, target, attempt, startedAt, sink, relief).run();
  }

  /** An attempt that is over before anything was sent; what is sent counts its time itself. */
  #unsent(target: CompiledTarget, quota: AttemptQuota | null, startedAt: number): void {
    quota?.giveBack();
    target.series.duration.observe((this.clock.now() - startedAt) / 1000);
  }
}

/** The time of an attempt counts from its begin, whoever spends it. */
function lateOutcome(target: CompiledTarget, attempt: Attempt): AttemptOutcome {
  const { requestTimeoutMs } = target.candidate.upstream.config;
  const reason = `request timeout after ${requestTimeoutMs}ms, spent in onAttempt of a plugin`;
  return {
    result: 'net_err',
    failure: { result: 'net_err', timedOut: true, reason },
    attempt,
    answered: false,
    status: 0,
  };
}
