import { Inject, Injectable } from '@nestjs/common';
import { GatewayError } from '../common/errors/gateway-error.js';
import { printable } from '../common/text/mask.js';
import type { Clock } from '../common/time/clock.js';
import type { Attempt, AttemptFailure } from '../contracts/exchange.js';
import { CLOCK } from '../contracts/ports.js';
import { GatewayLog } from '../observability/log/gateway-log.js';
import type { AttemptQuota } from './attempt-quota.js';
import { AnswerStages } from './answer-stages.js';
import { stagesLimit } from './attempt-limits.js';
import type { AttemptOutcome } from './attempt-outcome.js';
import { type AttemptDependencies, AttemptRun } from './attempt-run.js';
import { ConsumerMetrics } from '../observability/metrics/consumer.metrics.js';
import type { GatewayAttempt } from './gateway-attempt.js';
import type { CompiledTarget } from './compiled-target.js';
import type { GatewayExchange } from './gateway-exchange.js';
import { whenGivenUp } from './given-up.js';
import { AttemptShaper } from './attempt.shaper.js';
import { PluginGuard } from './plugin.guard.js';
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
    private readonly guard: PluginGuard,
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
      const attempt = this.shaper.make(exchange, target, exchange.records.length + 1);
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
      const { config } = target.candidate.upstream;
      const limit = stagesLimit(exchange, config, startedAt, attempt.body.isTrue('stream'));
      const end = await stageEnd(shaping.done, exchange, limit.dueAt, this.clock);
      if (end !== 'done') {
        shaping.abandon();
        this.#unsent(target, attempt.quota, startedAt);
        const { givenUp } = exchange;
        if (givenUp === null) return lateOutcome(attempt, limit, shaping.plugin);
        const why = whenGivenUp(givenUp);
        this.guard.abandoned(exchange.id, shaping.plugin, 'onAttempt', why, givenUp === 'client_gone');
        return CANCELLED;
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

/** The time of an attempt counts from its begin, whoever spends it; but the provider was not asked, so it is not to blame. */
function lateOutcome(
  attempt: Attempt,
  { reason, result }: Pick<AttemptFailure, 'reason' | 'result'>,
  plugin: string,
): AttemptOutcome {
  const spent = `${reason}, spent in onAttempt of the plugin ${printable(plugin)}`;
  const failure = { result, timedOut: true, ours: true, reason: spent };
  return { result, failure, attempt, answered: false, status: 0 };
}
