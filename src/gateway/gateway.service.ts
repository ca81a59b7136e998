import { Inject, Injectable } from '@nestjs/common';
import {
  allUpstreams,
  deadlineOver,
  internalError,
  noUsableKey,
  queueRefused,
  type Refusal,
  shuttingDown,
  stateUnavailable,
} from '../common/errors/catalogue.js';
import { streamInterrupted } from '../common/errors/error-form.js';
import { GatewayError } from '../common/errors/gateway-error.js';
import { headerSafeId } from '../common/http/response-headers.js';
import { printable } from '../common/text/mask.js';
import type { Clock } from '../common/time/clock.js';
import { ConfigStore } from '../config/config.store.js';
import type { Exposure } from '../config/gateway-config.js';
import { CLOCK } from '../contracts/ports.js';
import { ConsumerMetrics } from '../observability/metrics/consumer.metrics.js';
import { GatewayLog, shownTarget } from '../observability/log/gateway-log.js';
import { GatewayMetrics } from '../observability/metrics/gateway.metrics.js';
import { rejectionReasonOf } from '../observability/metrics/rejection-reason.js';
import type { Candidate } from '../routing/candidate.js';
import type { Plan } from '../routing/plan.js';
import type { ModelRoute } from '../routing/model-route.js';
import { RoutingService } from '../routing/routing.service.js';
import { SHARED_STATE, type SharedState } from '../state/shared-state.js';
import { gatesMs } from '../upstreams/concurrency/claimable.js';
import { type Claim, ConcurrencyService } from '../upstreams/concurrency/concurrency.service.js';
import type { UnservedReason } from '../upstreams/concurrency/waiter.js';
import { shownSlots, type Upstream } from '../upstreams/upstream.js';
import { AffinityDesk } from './affinity-desk.js';
import type { AttemptOutcome } from './attempt-outcome.js';
import { ClaimDesk, type ClaimResult } from './claim-desk.js';
import { candidateReport } from './candidate-report.js';
import type { Stage } from './compiled-target.js';
import type { Ending } from './ending.js';
import { explanation } from './explanation.js';
import { trailOf } from './exposure.js';
import { RelayedAnswer } from './continuation/relayed-answer.js';
import type { GatewayExchange } from './gateway-exchange.js';
import { givenUpError } from './given-up.js';
import { HeartbeatSink, withHeartbeat } from './heartbeat/heartbeat.js';
import { PipelineCompiler } from './pipeline.compiler.js';
import { PluginGuard } from './plugin.guard.js';
import { pushQueueMs } from './queue-standing.js';
import { Relief } from './relief.js';
import { RequestShaper } from './request.shaper.js';
import type { ResponseSink } from './response-sink.js';
import { summaryOf } from './exchange-summary.js';
import { Resolution } from './resolution.js';
import { RunningExchanges } from './running-exchanges.js';
import { passOn, UpstreamAttempts } from './upstream-attempts.js';

const LEFT: Ending = { outcome: null, target: null, status: 0 };

/**
 * The engine: one request from its complete body to its last byte. Claims an upstream, runs its attempts, books what came
 * of them, and goes on with the next upstream while nothing was sent to the client.
 */
@Injectable()
export class GatewayService {
  readonly #expose: Exposure;
  readonly #realModelOf: (upstream: string) => string;

  constructor(
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly routing: RoutingService,
    private readonly shaper: RequestShaper,
    private readonly affinity: AffinityDesk,
    private readonly resolution: Resolution,
    private readonly desk: ClaimDesk,
    private readonly concurrency: ConcurrencyService,
    private readonly upstreams: UpstreamAttempts,
    private readonly pipelines: PipelineCompiler,
    private readonly guard: PluginGuard,
    private readonly running: RunningExchanges,
    private readonly metrics: GatewayMetrics,
    private readonly consumers: ConsumerMetrics,
    private readonly log: GatewayLog,
    @Inject(SHARED_STATE) private readonly state: SharedState | null,
    store: ConfigStore,
  ) {
    this.#expose = store.current.server.expose;
    const realModels = new Map(store.current.upstreams.map(({ id, model }) => [id, model]));
    this.#realModelOf = (upstream) => realModels.get(upstream) ?? '';
  }

  /** Never rejects: everything that can go wrong becomes an answer, a broken connection, or a line in the log. */
  async handle(exchange: GatewayExchange, sink: ResponseSink): Promise<void> {
    this.running.add(exchange);
    let ending = LEFT;
    let out = sink;
    try {
      const route = this.resolution.withBody(exchange);
      if (exchange.input.explains === true) {
        ending = this.#explain(exchange, route, sink);
        return;
      }
      const { deadlineMs } = route.model;
      if (deadlineMs > 0) exchange.deadlineAt = this.clock.now() + deadlineMs;
      out = withHeartbeat(exchange, sink);
      const waiting = this.resolution.consumerLimits(exchange);
      if (waiting !== null) await waiting;
      const shaping = this.shaper.shape(exchange);
      if (shaping !== null) await shaping;
      let plan = this.routing.plan(route, exchange, exchange.sight);
      if (plan.model.affinity) plan = this.affinity.attach(exchange, plan);
      if (plan.model.onInterrupt === 'continue' && exchange.operation === 'chat')
        exchange.relayed = RelayedAnswer.of(exchange.body);
      ending = await this.#attempts(exchange, plan, out);
    } catch (error) {
      ending = this.#endWith(exchange, out, error);
    } finally {
      this.#close(exchange, out, ending);
    }
  }

  /** Trap: telling of an error may fail too, and a client without an end waits for ever, past every limit of time. */
  #endWith(exchange: GatewayExchange, sink: ResponseSink, error: unknown): Ending {
    try {
      return this.#refuse(exchange, sink, error);
    } catch (fault) {
      this.log.unexpected(exchange.id, 'the answer of an error', fault);
      return { outcome: null, target: null, status: internalError().status };
    } finally {
      // Nothing of it was told where that failed, or the head was gone; an answer that has its end stays as it is.
      if (exchange.givenUp !== 'client_gone') sink.close();
    }
  }

  /** Gives back, once, what it held; no step depends on another. */
  #close(exchange: GatewayExchange, sink: ResponseSink, ending: Ending): void {
    try {
      try {
        if (sink instanceof HeartbeatSink) sink.stop();
        this.running.delete(exchange);
        exchange.spending?.end();
      } finally {
        this.resolution.leave(exchange);
      }
    } catch (fault) {
      this.log.unexpected(exchange.id, 'the end of a request', fault);
    }
    try {
      this.#book(exchange, ending);
    } catch (fault) {
      this.log.unexpected(exchange.id, 'the end of a request', fault);
    }
    if (this.pipelines.onFinish !== null) this.#tellFinish(this.pipelines.onFinish, exchange, ending);
  }

  #explain(exchange: GatewayExchange, route: ModelRoute, sink: ResponseSink): Ending {
    let plan = this.routing.plan(route, exchange, exchange.sight);
    if (plan.model.affinity) plan = this.affinity.attach(exchange, plan);
    const absent = this.routing.absent(route, exchange.sight, exchange.input.operation);
    const body = Buffer.from(JSON.stringify(explanation(plan, absent, this.clock.now())));
    sink.head(200, [
      'content-type',
      'application/json; charset=utf-8',
      'content-length',
      String(body.length),
    ]);
    sink.end(body);
    this.log.explained(exchange.id, exchange.modelName);
    return { outcome: null, target: null, status: 200 };
  }

  async #attempts(exchange: GatewayExchange, plan: Plan, sink: ResponseSink): Promise<Ending> {
    let tried: Set<Upstream> | null = null;
    let relief: Relief | null = null;
    try {
      for (;;) {
        if (exchange.givenUp === 'client_gone') return exchange.relayed?.suspension ?? LEFT;
        if (exchange.givenUp !== null) throw givenUpError(exchange.givenUp);
        if (this.state?.rejecting) throw stateUnavailable();
        if (exchange.records.length >= plan.maxAttempts || this.#late(exchange))
          return this.#none(exchange, plan, sink);
        const candidates = open(exchange, plan);
        const claiming: ClaimResult | Promise<ClaimResult> =
          relief?.use() ?? this.desk.claim(exchange, candidates, tried);
        const claim: ClaimResult = claiming instanceof Promise ? await claiming : claiming;
        if (this.log.debugEnabled) this.#logSkipped(exchange, plan, tried, claimOf(claim));
        if (claim === null) return this.#none(exchange, plan, sink);
        if ('unserved' in claim) {
          if (claim.unserved === 'left') continue;
          return this.#none(exchange, plan, sink, claim.unserved);
        }
        const { upstream } = claim.candidate;
        relief = null;
        if (upstream.config.firstTokenTimeoutMs > 0) {
          (tried ??= new Set()).add(upstream);
          relief = new Relief(this.concurrency, exchange, candidates, tried, plan.maxAttempts);
        }
        const before = exchange.records.length;
        const ending = await this.upstreams.run(exchange, claim, plan.maxAttempts, sink, relief);
        if (ending !== null) return ending;
        // Other replicas had used up what was left: its gate says so now, and it was not tried.
        if (exchange.records.length === before && gatesMs(claim.candidate.gates) > 0) tried?.delete(upstream);
        else (tried ??= new Set()).add(upstream);
      }
    } finally {
      relief?.release();
    }
  }

  #late({ deadlineAt }: GatewayExchange): boolean {
    return deadlineAt !== Infinity && this.clock.now() >= deadlineAt;
  }

  /** No upstream is left: one of the 503s, a 429 of quotas, or the first error that said the prompt was too long. */
  #none(
    exchange: GatewayExchange,
    plan: Plan,
    sink: ResponseSink,
    unserved: UnservedReason | null = null,
  ): Ending {
    const { relayed, tooLong } = exchange;
    if (relayed?.begun === true) return this.#unfinished(exchange, relayed, sink);
    if (unserved === 'shutting_down') throw shuttingDown();
    if (tooLong !== null) return passOn(exchange, tooLong.target, tooLong.held, sink, this.clock);
    const error = this.#refusal(exchange, plan, unserved);
    const slots = plan.candidates.map(
      ({ upstream }) => `${printable(upstream.id)}=${printable(shownSlots(upstream))}`,
    );
    const status = this.#answerError(exchange, sink, error, error.message, slots.join(', '));
    return { outcome: null, target: null, status };
  }

  #refusal(exchange: GatewayExchange, plan: Plan, unserved: UnservedReason | null): GatewayError {
    const nothingTried = exchange.records.length === 0;
    const told = this.#attemptsTold(exchange, plan);
    if (nothingTried && (unserved === 'queue_full' || unserved === 'queue_timeout'))
      return queueRefused(unserved, this.concurrency.retryMs(plan.candidates), told);
    if (nothingTried && unserved === null && this.#late(exchange))
      return deadlineOver(exchange.model.deadlineMs, told);
    const { allClosedBy, someAlive, soonestMs } = this.concurrency.refusal(plan.candidates);
    const alone: Refusal = someAlive ? 'busy' : allClosedBy === 'quota' ? 'quota' : 'cooling';
    const refusal = nothingTried ? alone : 'failed';
    if (refusal === 'cooling' && soonestMs === Infinity) return noUsableKey(told);
    return allUpstreams(refusal, someAlive ? 1000 : soonestMs, told);
  }

  /** `error.attempts`: what was tried or, where the model says more than a list, every candidate. */
  #attemptsTold(exchange: GatewayExchange, plan: Plan): readonly object[] {
    if (this.#expose === 'none') return [];
    if (!plan.model.detailed && plan.leftOut.length === 0) return exchange.records;
    return candidateReport(plan, exchange.records, this.clock.now());
  }

  /** An answer had begun, and nobody can go on with it. */
  #unfinished({ givenUp }: GatewayExchange, relayed: RelayedAnswer, sink: ResponseSink): Ending {
    const cause = givenUp === null || givenUp === 'client_gone' ? 'upstream' : givenUp;
    sink.endInterrupted(Buffer.concat([...relayed.withheld, streamInterrupted(cause)]));
    return relayed.suspension ?? { outcome: null, target: null, status: relayed.status };
  }

  #refuse(exchange: GatewayExchange, sink: ResponseSink, error: unknown): Ending {
    if (exchange.givenUp === 'client_gone') return exchange.relayed?.suspension ?? LEFT;
    if (!(error instanceof GatewayError)) this.log.unexpected(exchange.id, 'the gateway', error);
    if (exchange.relayed?.begun === true) return this.#unfinished(exchange, exchange.relayed, sink);
    const answer = error instanceof GatewayError ? error : internalError();
    const status = this.#answerError(exchange, sink, answer, answer.code, '');
    return { outcome: null, target: null, status };
  }

  /** Gives the status that was sent. */
  #answerError(
    exchange: GatewayExchange,
    sink: ResponseSink,
    error: GatewayError,
    text: string,
    detail: string,
  ): number {
    const model = exchange.modelName;
    const reason = rejectionReasonOf(error);
    const headers = model === '' ? [] : ['x-llm-proxy-model', headerSafeId(model)];
    if (exchange.routed && this.#expose !== 'none') {
      headers.push('x-llm-proxy-attempts', String(exchange.records.length));
      const trail = trailOf(exchange.records);
      if (trail !== '') headers.push('x-llm-proxy-trail', trail);
      pushQueueMs(headers, exchange, this.clock);
    }
    const summary = summaryOf(exchange, this.#realModelOf);
    // Nobody asked for an answer of a model where an administrator asks for an explanation.
    if (reason !== null && exchange.input.explains !== true) this.metrics.rejected(model, reason);
    exchange.rejection = reason;
    this.log.rejected(exchange.id, model, error.status, text, detail, exchange.records, summary);
    try {
      sink.error(error, headers);
      return error.status;
    } catch (fault) {
      this.log.unexpected(exchange.id, 'the answer of an error', fault);
      return internalError().status;
    }
  }

  #book(exchange: GatewayExchange, ending: Ending): void {
    const attached = exchange.attachment?.outcome ?? null;
    if (attached !== null) this.metrics.attached(exchange.modelName, attached);
    const durationMs = this.clock.now() - exchange.input.startedAt;
    const { outcome, target } = ending;
    const { consumer } = exchange;
    if (consumer !== null) {
      const result =
        exchange.records.at(-1)?.result ?? (ending === LEFT ? 'cancelled' : (exchange.rejection ?? 'error'));
      consumer.useIn(this.consumers).counted(exchange.modelName, result);
    }
    if (outcome !== null && target !== null) {
      const { result, status } = outcome;
      const slots = String(target.candidate.upstream.slots);
      const cutShort = exchange.givenUp === 'shutting_down' && !isWhole(outcome);
      const remark = cutShort ? 'cut short: shutting down' : '';
      this.log.done(
        exchange.id,
        target.logged,
        { result, status, durationMs, attempts: exchange.records, remark },
        slots,
        summaryOf(exchange, this.#realModelOf),
      );
    } else if (ending === LEFT) {
      this.log.left(exchange.id, exchange.modelName, durationMs, summaryOf(exchange, this.#realModelOf));
    }
  }

  #tellFinish(stages: readonly Stage<'onFinish'>[], exchange: GatewayExchange, ending: Ending): void {
    const { outcome, status } = ending;
    const result = exchange.records.at(-1)?.result;
    const durationMs = this.clock.now() - exchange.input.startedAt;
    const complete = outcome === null ? ending !== LEFT : isWhole(outcome);
    for (const { id, hooks } of stages) {
      this.guard.quietly(exchange.id, id, 'onFinish', () =>
        hooks.onFinish(exchange, {
          ...(result === undefined ? {} : { result }),
          status,
          durationMs,
          complete,
        }),
      );
    }
  }

  /** Those that rest and stand before the claimed one. */
  #logSkipped(
    exchange: GatewayExchange,
    plan: Plan,
    tried: ReadonlySet<Upstream> | null,
    claim: Claim<Candidate> | null,
  ): void {
    const now = this.clock.now();
    for (const candidate of plan.candidates) {
      if (candidate === claim?.candidate) return;
      const { upstream } = candidate;
      if (tried?.has(upstream)) continue;
      const restingMs = upstream.restingMs(now);
      const gate = candidate.gates?.find((one) => one.closedMs() > 0);
      // Trap: no compiled target, whose plugins may throw while a slot is claimed.
      const { config } = upstream;
      const logged = shownTarget(candidate.model.name, config.id, config.provider.id);
      if (restingMs > 0) this.log.skipped(exchange.id, logged, restingMs);
      else if (gate !== undefined) this.log.closed(exchange.id, logged, gate.reason, gate.closedMs());
    }
  }
}

/** Those that may be tried now, by what is known of the answer so far. */
function open({ relayed, tooLong }: GatewayExchange, { candidates }: Plan): readonly Candidate[] {
  // Only some can go on with a text that another one began.
  if (relayed?.begun === true) return candidates.filter(({ upstream }) => upstream.config.prefill !== null);
  return tooLong?.larger(candidates) ?? candidates;
}

function claimOf(result: ClaimResult): Claim<Candidate> | null {
  return result === null || 'unserved' in result ? null : result;
}

/** Whether the client has all of an answer of the upstream. */
function isWhole({ complete, failure, result }: AttemptOutcome): boolean {
  return complete === true || (failure === undefined && result !== 'cancelled' && result !== 'net_err');
}
