import { invalidHeader } from '../common/errors/catalogue.js';
import type { BreakCause } from '../common/errors/error-form.js';
import { contentCoding, type UpstreamHeaders } from '../common/http/response-headers.js';
import type { JsonDocument } from '../common/json/json-document.js';
import type { Clock } from '../common/time/clock.js';
import type { AttemptFailure, AttemptResult } from '../contracts/exchange.js';
import type { StreamObserver, StreamTransform } from '../contracts/stream.js';
import { type AnswerListener, UpstreamCall } from '../upstreams/upstream-call.js';
import type { InterruptionPhase } from '../observability/metrics/gateway.metrics.js';
import type { TransportFailure } from '../upstreams/transport-failure.js';
import type { AnswerHost, AnswerReader, CommitOptions } from './answer/answer-reader.js';
import { chooseReader } from './answer/choose-reader.js';
import { answerHeaders } from './answer-headers.js';
import { type AttemptOutcome, resultGiven } from './attempt-outcome.js';
import { requestLimitMs, requestOver } from './attempt-limits.js';
import { AttemptTimers, type TimeOver, type TimerOwner } from './attempt-timers.js';
import type { RelayedAnswer } from './continuation/relayed-answer.js';
import { continuationOf } from './continuation/continuation-of.js';
import type { SeamTransform } from './continuation/seam.transform.js';
import { FailureWatch } from './answer/failure-watch.js';
import { failureOf } from './answer/protocol-failure.js';
import type { PassableAnswer } from './answer/passable-answer.js';
import type { CompiledTarget } from './compiled-target.js';
import type { GatewayAttempt } from './gateway-attempt.js';
import type { GatewayExchange, GivenUp } from './gateway-exchange.js';
import { TransformFailure } from './guarded-transform.js';
import type { ResponseSink } from './response-sink.js';
import type { StreamPipeline } from './stream-pipeline.js';
import type { Relief } from './relief.js';
import { UsageObserver } from './usage.observer.js';
import { upstreamRequest } from './upstream-request.js';

export interface AttemptDependencies {
  readonly clock: Clock;
  readonly wallClockMs: () => number;
  /** `last`: a stage behind all others. */
  readonly openPipeline: (
    target: CompiledTarget,
    attempt: GatewayAttempt,
    usage: UsageObserver,
    last: StreamTransform | null,
    failures: StreamObserver | null,
  ) => StreamPipeline;
  /** Told what an attempt for a consumer used, as far as the answer says. */
  readonly onUsage: (exchange: GatewayExchange, tokens: UsageObserver['tokens']) => void;
  /** Told of an error of this side, which is no answer of the provider's. */
  readonly onCrash: (exchange: GatewayExchange, error: unknown) => void;
}

/**
 * One attempt on the wire: sends the request, lets a reader judge and relay the answer, and ends exactly once — after
 * the upstream is really free, so that whoever holds the slot may give it back. Lives to that end. Before the commit it may fail as often as
 * it likes; after it, it tells the client in band and never throws.
 */
export class AttemptRun implements AnswerListener, AnswerHost, TimerOwner {
  status = 0;
  headers: UpstreamHeaders = {};
  committed = false;
  breakCause: BreakCause = 'upstream';
  #call: UpstreamCall | null = null;
  #reader: AnswerReader | null = null;
  #pipeline: StreamPipeline | null = null;
  readonly #usage = new UsageObserver();
  readonly #timers: AttemptTimers;
  /** Where an answer may hold an error that its status does not tell. */
  readonly #failures: FailureWatch | null;
  #firstByteSeen = false;
  #firstByteMs = 0;
  #outcome: AttemptOutcome | null = null;
  #settled = false;
  #over = false;
  #resolve: (outcome: AttemptOutcome) => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #ownDoing = false;
  readonly #streamAsked: boolean;
  /** Where another upstream may go on with this answer, or this one goes on with another's. */
  readonly #continuation: { readonly answer: RelayedAnswer; readonly seam: SeamTransform } | null;

  constructor(
    private readonly dependencies: AttemptDependencies,
    private readonly exchange: GatewayExchange,
    private readonly target: CompiledTarget,
    private readonly attempt: GatewayAttempt,
    /** Monotonic. */
    private readonly startedAt: number,
    readonly sink: ResponseSink,
    private readonly relief: Relief | null = null,
  ) {
    this.#streamAsked = attempt.body.isTrue('stream');
    this.#failures = failureOf(exchange.input.operation) === null ? null : new FailureWatch();
    const { relayed } = exchange;
    this.#continuation = relayed === null ? null : continuationOf(exchange, relayed, attempt.body);
    const { config } = target.candidate.upstream;
    const limitMs = requestLimitMs(exchange, config, startedAt);
    this.#timers = new AttemptTimers(dependencies.clock, startedAt, config, limitMs, this.#streamAsked, this);
  }

  /**
   * Resolves when the attempt is over and the upstream is free. Rejects where nothing was sent to the provider either, and an
   * error of this side (a request that HTTP cannot carry) stands in the way.
   */
  run(): Promise<AttemptOutcome> {
    const request = upstreamRequest(this.target, this.attempt, this.exchange.input);
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      // Trap: not written as `object.property = () => …`: V8 puts such closures straight into the old generation, where
      // each keeps its whole request until the next major collection (docs/performance.md).
      const givenUp = (why: GivenUp) => this.#givenUp(why);
      const drained = () => this.#drained();
      this.exchange.onGivenUp = givenUp;
      this.sink.onDrain = drained;
      const { client } = this.target.candidate.upstream;
      this.#call = new UpstreamCall(client, request, this, () => this.#released());
      this.#timers.start();
      try {
        this.#call.start();
      } catch {
        this.crashed(invalidHeader());
      }
    });
  }

  // ---- what the call tells

  onHead(status: number, headers: UpstreamHeaders): void {
    this.status = status;
    this.headers = headers;
    try {
      this.#reader = chooseReader(this, {
        clientWantsStream: this.exchange.body.isTrue('stream'),
        streamAsked: this.#streamAsked,
        barrier: this.target.barrier,
        continuation: this.#continuation,
        operation: this.exchange.input.operation,
        namesMore: this.exchange.namesMore(this.attempt.upstream),
        requestId: this.exchange.id,
        maskBytes: this.target.maskBytes,
        wallClockMs: this.dependencies.wallClockMs,
        classify: this.target.classify,
      });
    } catch (error) {
      this.crashed(error);
    }
  }

  onData(chunk: Buffer): boolean {
    if (!this.#firstByteSeen) this.#firstByte();
    else this.#timers.byte();
    if (this.attempt.quota !== null) this.attempt.quota.answerBytes += chunk.length;
    try {
      if (this.#reader === null || this.#reader.data(chunk)) return true;
      this.#timers.paused();
      return false;
    } catch (error) {
      this.crashed(error);
      return true;
    }
  }

  onEnd(): void {
    try {
      this.#reader?.end();
    } catch (error) {
      this.crashed(error);
    }
  }

  onFailure(failure: TransportFailure): void {
    const broken = this.#failure('net_err', failure.reason);
    this.#broken(failure.ours === true ? { ...broken, ours: true } : broken);
  }

  timeOver(which: TimeOver): void {
    const { config } = this.target.candidate.upstream;
    const { firstByteTimeoutMs, firstTokenTimeoutMs, idleTimeoutMs } = config;
    switch (which) {
      case 'first_byte':
        this.#timedOut('timeout', `no first byte within ${firstByteTimeoutMs}ms`);
        break;
      case 'first_token':
        // The last candidate is never cut, so who is to take over is claimed first.
        if (this.relief?.take(() => this.#reliefFound()) === true)
          this.#timedOut('timeout', `no first token within ${firstTokenTimeoutMs}ms`);
        else this.#timers.postponeFirstToken();
        break;
      case 'idle':
        this.#timedOut('timeout', `silent for ${idleTimeoutMs}ms`);
        break;
      case 'request':
        this.#timedOut('net_err', requestOver(this.exchange, config, this.startedAt));
    }
  }

  #reliefFound(): void {
    if (this.#outcome === null && this.#timers.awaitsToken) this.timeOver('first_token');
    else this.relief?.release();
  }

  // ---- what the reader tells

  pipeline(): StreamPipeline {
    this.#pipeline ??= this.dependencies.openPipeline(
      this.target,
      this.attempt,
      this.#usage,
      this.#continuation?.seam ?? null,
      this.#failures,
    );
    return this.#pipeline;
  }

  get transforming(): boolean {
    const { quota } = this.attempt;
    // What a quota of tokens, or the book of issued ids, needs to know of a coded answer is only found by decoding it.
    const looksInside = quota?.countsTokens === true || this.exchange.learnsIds;
    if (looksInside && contentCoding(this.headers) !== null) return true;
    if (this.target.onResponse === null && quota === null) return false;
    return this.pipeline().transforming;
  }

  whole(answer: JsonDocument): void {
    // Most answers have no stage but the meter of their usage: no pipeline is built for them.
    if (this.target.onResponse === null && this.target.observe === null) this.#usage.whole(answer);
    else this.pipeline().whole(answer);
  }

  piece(bytes: Buffer): void {
    if (this.target.observe !== null) this.pipeline().piece(bytes);
  }

  commit(options: CommitOptions): void {
    this.committed = true;
    // Where no reader knows what a first token is, the first byte that is sent is one.
    this.#timers.firstToken();
    const { relayed } = this.exchange;
    // What goes on with an answer has its head already.
    if (relayed?.begun === true) return;
    if (relayed !== null && options.kind === 'sse') relayed.begin(this.status);
    this.exchange.attachment?.answered(this.target.candidate, this.target.key?.id ?? null);
    this.sink.head(this.status, this.#answerHeaders(options));
  }

  finish(result: 'ok' | '4xx'): void {
    const { refused } = this.sink;
    if (refused instanceof Error) this.dependencies.onCrash(this.exchange, refused);
    if (this.#failures?.seen === true) {
      const failure: AttemptFailure = { result: '5xx', status: this.status, reason: 'sent an error event' };
      this.#end({ result: '5xx', failure, answered: true, status: this.status });
    } else this.#end({ result: resultGiven(result, refused), answered: true, status: this.status });
  }

  fail(failure: AttemptFailure, passable?: PassableAnswer): void {
    const outcome = { result: failure.result, failure, attempt: this.attempt, answered: false, status: 0 };
    // Who goes on with an answer cannot pass an error instead.
    if (passable === undefined || this.exchange.relayed?.begun === true) this.#end(outcome);
    else {
      const { status, body, options } = passable;
      this.#end({
        ...outcome,
        held: { status, headers: this.#answerHeaders(options), body },
      });
    }
  }

  interrupted(failure: AttemptFailure, phase?: InterruptionPhase): void {
    if (phase !== undefined && !this.#ownDoing) this.target.series.countInterruption(phase);
    const complete = this.exchange.relayed?.finished === true;
    const outcome = { result: failure.result, answered: true, complete, status: this.status };
    // What this side, or the client, broke off is no failure of the upstream.
    this.#end(this.#ownDoing ? outcome : { ...outcome, failure });
  }

  get continuable(): boolean {
    return !this.#ownDoing;
  }

  suspended(failure: AttemptFailure, phase: InterruptionPhase): void {
    this.target.series.countInterruption(phase);
    const { attempt, status } = this;
    this.#end({ result: failure.result, failure, attempt, answered: false, suspended: true, status });
  }

  resume(): void {
    this.#timers.resumed();
    this.#call?.resume();
  }

  tokenSeen(): void {
    this.#timers.firstToken();
  }

  /** An error that is nobody's answer: not the provider's fault, so neither a failure nor a success of it. */
  crashed(error: unknown): void {
    if (this.#outcome !== null) return;
    if (!(error instanceof TransformFailure)) this.dependencies.onCrash(this.exchange, error);
    if (this.committed) {
      this.breakCause = 'own_error';
      this.#tellInterrupted({ result: 'net_err', reason: 'interrupted by an error of the service' });
      this.#end({ result: 'net_err', answered: true, status: this.status });
    } else {
      const crash = { error: error instanceof TransformFailure ? error.answer : error };
      this.#end({ result: 'cancelled', answered: false, status: 0, crash });
    }
  }

  // ---- inside

  #drained(): void {
    if (this.#reader?.drained?.() !== true) this.resume();
  }

  #firstByte(): void {
    this.#firstByteSeen = true;
    const elapsedMs = this.dependencies.clock.now() - this.startedAt;
    this.#firstByteMs = elapsedMs;
    this.target.series.firstByte.observe(elapsedMs / 1000);
    this.#timers.firstByte();
    // Nobody looks for a token where no barrier holds the answer.
    if (!this.target.barrier) this.#timers.firstToken();
  }

  #failure(result: AttemptResult, reason: string): AttemptFailure {
    return this.status > 0 ? { result, reason, status: this.status } : { result, reason };
  }

  #timedOut(result: 'timeout' | 'net_err', reason: string): void {
    this.breakCause = 'timed_out';
    this.#broken({ ...this.#failure(result, reason), timedOut: true });
  }

  #broken(failure: AttemptFailure): void {
    if (this.#outcome !== null) return;
    if (this.#reader === null) this.fail(failure);
    else this.#reader.broken(failure);
  }

  #givenUp(why: GivenUp): void {
    if (this.#outcome !== null) return;
    // An answer that this service breaks off is a broken one; nobody went away.
    const result = why === 'client_gone' ? 'cancelled' : 'net_err';
    // One that only ended its own side reads the last event.
    this.breakCause = why;
    if (this.committed) this.#tellInterrupted({ result, reason: why });
    if (this.#outcome === null) {
      if (this.committed) this.#end({ result, answered: true, status: this.status });
      else this.#end({ result: 'cancelled', answered: false, status: 0 });
    }
  }

  /** In band where the answer has a way for it, else by breaking the connection. */
  #tellInterrupted(failure: AttemptFailure): void {
    this.#ownDoing = true;
    try {
      this.#reader?.broken(failure);
    } catch {
      this.sink.cut(this.breakCause);
    }
  }

  /** The first end counts. A call that still runs is aborted; the outcome is given when the upstream is free. */
  #end(outcome: AttemptOutcome): void {
    if (this.#outcome !== null) return;
    this.#outcome = outcome;
    this.#timers.stop();
    this.exchange.onGivenUp = null;
    this.sink.onDrain = null;
    try {
      this.#reader?.stop?.();
      this.#usage.settle(this.target.series);
      this.attempt.quota?.end(this.#call?.sent === true, outcome.result, this.#usage);
      if (this.exchange.consumer !== null) this.dependencies.onUsage(this.exchange, this.#usage.tokens);
    } catch (error) {
      this.dependencies.onCrash(this.exchange, error);
    }
    this.#call?.abort();
    this.#settle();
  }

  #answerHeaders(options: CommitOptions): string[] {
    return answerHeaders(this, options, this.target, this.attempt, this.exchange, this.dependencies.clock);
  }

  #released(): void {
    this.#over = true;
    this.#settle();
  }

  #settle(): void {
    if (this.#settled || !this.#over || this.#outcome === null) return;
    this.#settled = true;
    const outcome = this.#outcome;
    // The provider got nothing: there was no attempt.
    if (outcome.crash !== undefined && this.#call?.sent !== true) return this.#reject(outcome.crash.error);
    this.target.series.duration.observe((this.dependencies.clock.now() - this.startedAt) / 1000);
    this.#resolve(this.#firstByteSeen ? { ...outcome, firstByteMs: this.#firstByteMs } : outcome);
  }
}
