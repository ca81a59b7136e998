import { invalidHeader } from '../common/errors/catalogue.js';
import { contentCoding, relayedHeaders, type UpstreamHeaders } from '../common/http/response-headers.js';
import type { JsonDocument } from '../common/json/json-document.js';
import { type Clock, timerDelay } from '../common/time/clock.js';
import type { Attempt, AttemptFailure, AttemptResult } from '../contracts/exchange.js';
import { type AnswerListener, UpstreamCall } from '../upstreams/upstream-call.js';
import type { TransportFailure } from '../upstreams/transport-failure.js';
import type { AnswerHost, AnswerReader, CommitOptions } from './answer/answer-reader.js';
import { chooseReader } from './answer/choose-reader.js';
import { trailOf } from './exposure.js';
import type { HeldAnswer, PassableAnswer } from './answer/passable-answer.js';
import type { CompiledTarget } from './compiled-target.js';
import type { GatewayAttempt } from './gateway-attempt.js';
import type { GatewayExchange, GivenUp } from './gateway-exchange.js';
import { TransformFailure } from './guarded-transform.js';
import type { ResponseSink } from './response-sink.js';
import type { StreamPipeline } from './stream-pipeline.js';
import { UsageObserver } from './usage.observer.js';
import { upstreamRequest } from './upstream-request.js';

export interface AttemptOutcome {
  readonly result: AttemptResult;
  /** Present where the attempt failed. */
  readonly failure?: AttemptFailure;
  /** Present where it failed before anything was sent to the client. */
  readonly attempt?: Attempt;
  /** True when something was sent to the client, which then has all it will get. */
  readonly answered: boolean;
  /** Status sent to the client, or 0. */
  readonly status: number;
  /** Time to the first byte of the body; absent where none came. */
  readonly firstByteMs?: number;
  /** An error that may be sent to the client if nothing better comes. */
  readonly held?: HeldAnswer;
}

export interface AttemptDependencies {
  readonly clock: Clock;
  readonly wallClockMs: () => number;
  readonly openPipeline: (
    target: CompiledTarget,
    attempt: GatewayAttempt,
    usage: UsageObserver,
  ) => StreamPipeline;
  /** Told of an error of this side, which is no answer of the provider's. */
  readonly onCrash: (exchange: GatewayExchange, error: unknown) => void;
}

/** A timer that fires later than this after its time was held up by a blocked process. */
const LATE_MS = 50;

/**
 * One attempt on the wire: sends the request, lets a reader judge and relay the answer, and ends exactly once — after
 * the upstream is really free, so that whoever holds the slot may give it back. Lives to that end. Before the commit it may fail as often as
 * it likes; after it, it tells the client in band and never throws.
 */
export class AttemptRun implements AnswerListener, AnswerHost {
  status = 0;
  headers: UpstreamHeaders = {};
  committed = false;
  #call: UpstreamCall | null = null;
  #reader: AnswerReader | null = null;
  #pipeline: StreamPipeline | null = null;
  readonly #usage = new UsageObserver();
  #timer: NodeJS.Timeout | null = null;
  #firstByteSeen = false;
  #firstByteMs = 0;
  #outcome: AttemptOutcome | null = null;
  #settled = false;
  #over = false;
  #resolve: (outcome: AttemptOutcome) => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #ownDoing = false;
  #crash: { readonly error: unknown } | null = null;
  readonly #streamAsked: boolean;

  constructor(
    private readonly dependencies: AttemptDependencies,
    private readonly exchange: GatewayExchange,
    private readonly target: CompiledTarget,
    private readonly attempt: GatewayAttempt,
    /** Monotonic. */
    private readonly startedAt: number,
    readonly sink: ResponseSink,
  ) {
    this.#streamAsked = attempt.body.isTrue('stream');
  }

  /**
   * Resolves when the attempt is over and the upstream is free. Rejects where nothing was sent to the client and an error
   * of this side (a plugin's, or a request that HTTP cannot carry) stands in the way.
   */
  run(): Promise<AttemptOutcome> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      // Trap: not written as `object.property = () => …`: V8 puts such closures straight into the old generation, where
      // each keeps its whole request until the next major collection (docs/performance.md).
      const givenUp = (why: GivenUp) => this.#givenUp(why);
      const drained = () => this.#drained();
      this.exchange.onGivenUp = givenUp;
      this.sink.onDrain = drained;
      const request = upstreamRequest(this.target, this.attempt, this.exchange.input);
      const { client } = this.target.candidate.upstream;
      this.#call = new UpstreamCall(client, request, this, () => this.#released());
      this.#armTimer();
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
    if (this.attempt.quota !== null) this.attempt.quota.answerBytes += chunk.length;
    try {
      return this.#reader === null || this.#reader.data(chunk);
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
    this.#broken({
      result: 'net_err',
      reason: failure.reason,
      ...(this.status > 0 ? { status: this.status } : {}),
    });
  }

  // ---- what the reader tells

  pipeline(): StreamPipeline {
    return (this.#pipeline ??= this.dependencies.openPipeline(this.target, this.attempt, this.#usage));
  }

  get transforming(): boolean {
    const { quota } = this.attempt;
    if (this.target.onResponse === null && quota === null) return false;
    // What a quota of tokens needs to know of a coded answer is only found by decoding it.
    const mustDecode = quota?.countsTokens === true && contentCoding(this.headers) !== null;
    return mustDecode || this.pipeline().transforming;
  }

  whole(answer: JsonDocument): void {
    // Most answers have no stage but the meter of their usage: no pipeline is built for them.
    if (this.target.onResponse === null && this.target.observe === null) this.#usage.whole(answer);
    else this.pipeline().whole(answer);
  }

  commit(options: CommitOptions): void {
    this.committed = true;
    this.sink.head(this.status, this.#answerHeaders(options));
  }

  finish(result: 'ok' | '4xx'): void {
    this.#end({ result, answered: true, status: this.status });
  }

  fail(failure: AttemptFailure, passable?: PassableAnswer): void {
    const outcome = { result: failure.result, failure, attempt: this.attempt, answered: false, status: 0 };
    if (passable === undefined) this.#end(outcome);
    else {
      const { status, body, options } = passable;
      this.#end({ ...outcome, held: { status, headers: this.#answerHeaders(options), body } });
    }
  }

  interrupted(failure: AttemptFailure): void {
    const outcome = { result: failure.result, answered: true, status: this.status };
    // What this side, or the client, broke off is no failure of the upstream.
    this.#end(this.#ownDoing ? outcome : { ...outcome, failure });
  }

  resume(): void {
    this.#call?.resume();
  }

  /** An error that is nobody's answer: not the provider's fault, so neither a failure nor a success of it. */
  crashed(error: unknown): void {
    if (this.#outcome !== null) return;
    if (!(error instanceof TransformFailure)) this.dependencies.onCrash(this.exchange, error);
    if (this.committed) {
      this.#tellInterrupted({ result: 'net_err', reason: 'interrupted by an error of the service' });
      this.#end({ result: 'net_err', answered: true, status: this.status });
    } else {
      this.#crash = { error: error instanceof TransformFailure ? error.answer : error };
      this.#end({ result: 'cancelled', answered: false, status: 0 });
    }
  }

  // ---- inside

  #drained(): void {
    if (this.#reader?.drained) this.#reader.drained();
    else this.#call?.resume();
  }

  #firstByte(): void {
    this.#firstByteSeen = true;
    const elapsedMs = this.dependencies.clock.now() - this.startedAt;
    this.#firstByteMs = elapsedMs;
    this.target.series.firstByte.observe(elapsedMs / 1000);
    if (this.#watchesFirstByte) this.#armTimer();
  }

  get #watchesFirstByte(): boolean {
    return this.#streamAsked && this.target.candidate.upstream.config.firstByteTimeoutMs > 0;
  }

  /** Of this attempt: its own limit, or what the deadline of the whole request leaves. */
  get #requestLimitMs(): number {
    const { requestTimeoutMs } = this.target.candidate.upstream.config;
    const leftMs = Math.max(0, this.exchange.deadlineAt - this.startedAt);
    return Math.min(leftMs, requestTimeoutMs > 0 ? requestTimeoutMs : Infinity);
  }

  /** One timer at a time: the nearer of first byte and whole exchange. */
  #armTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const { firstByteTimeoutMs } = this.target.candidate.upstream.config;
    const firstByteMs = this.#watchesFirstByte && !this.#firstByteSeen ? firstByteTimeoutMs : Infinity;
    const limitMs = Math.min(firstByteMs, this.#requestLimitMs);
    if (limitMs === Infinity) return;
    const dueAt = this.startedAt + limitMs;
    const leftMs = dueAt - this.dependencies.clock.now();
    this.#timer = setTimeout(() => this.#timeOver(dueAt, limitMs === firstByteMs), timerDelay(leftMs));
  }

  #timeOver(dueAt: number, forFirstByte: boolean): void {
    const lateMs = this.dependencies.clock.now() - dueAt;
    if (lateMs < 0) {
      this.#armTimer();
    } else if (lateMs > LATE_MS) {
      // Trap: timers run before sockets are read. A process that was blocked looks at its sockets before it judges.
      this.#timer = setTimeout(() => this.#judgeTime(forFirstByte), LATE_MS);
    } else {
      setImmediate(() => this.#judgeTime(forFirstByte));
    }
  }

  #judgeTime(forFirstByte: boolean): void {
    if (this.#outcome !== null || (forFirstByte && this.#firstByteSeen)) return;
    const { firstByteTimeoutMs } = this.target.candidate.upstream.config;
    const failure: AttemptFailure = forFirstByte
      ? { result: 'timeout', timedOut: true, reason: `no first byte within ${firstByteTimeoutMs}ms` }
      : {
          result: 'net_err',
          timedOut: true,
          reason: `request timeout after ${Math.round(this.#requestLimitMs)}ms`,
        };
    this.#broken(this.status > 0 ? { ...failure, status: this.status } : failure);
  }

  #broken(failure: AttemptFailure): void {
    if (this.#outcome !== null) return;
    if (this.#reader === null) this.fail(failure);
    else this.#reader.broken(failure);
  }

  #givenUp(why: GivenUp): void {
    if (this.#outcome !== null) return;
    if (this.committed) this.#tellInterrupted({ result: 'cancelled', reason: why });
    if (this.#outcome === null) {
      this.#end({ result: 'cancelled', answered: this.committed, status: this.committed ? this.status : 0 });
    }
  }

  /** In band where the answer has a way for it, else by breaking the connection. */
  #tellInterrupted(failure: AttemptFailure): void {
    this.#ownDoing = true;
    try {
      this.#reader?.broken(failure);
    } catch {
      this.sink.cut();
    }
  }

  /** The first end counts. A call that still runs is aborted; the outcome is given when the upstream is free. */
  #end(outcome: AttemptOutcome): void {
    if (this.#outcome !== null) return;
    this.#outcome = outcome;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.exchange.onGivenUp = null;
    this.sink.onDrain = null;
    this.#reader?.stop?.();
    this.#usage.settle(this.target.series);
    this.attempt.quota?.end(this.#call?.sent === true, outcome.result, this.#usage);
    this.#call?.abort();
    this.#settle();
  }

  #released(): void {
    this.#over = true;
    this.#settle();
  }

  #settle(): void {
    if (this.#settled || !this.#over || this.#outcome === null) return;
    this.#settled = true;
    if (this.#crash === null) this.#resolve(this.#told(this.#outcome));
    else this.#reject(this.#crash.error);
  }

  #told(outcome: AttemptOutcome): AttemptOutcome {
    return this.#firstByteSeen ? { ...outcome, firstByteMs: this.#firstByteMs } : outcome;
  }

  #answerHeaders(options: CommitOptions): string[] {
    const { kind, contentLength, contentType } = options;
    const ownLength = kind === 'sse' || contentLength !== undefined;
    const headers = relayedHeaders(this.headers, {
      bodyChanged: options.bodyChanged,
      without: ownLength || contentType !== undefined ? overridden(options) : null,
      mask: this.target.mask,
    });
    if (contentType !== undefined) headers.push('content-type', contentType);
    if (contentLength !== undefined) headers.push('content-length', String(contentLength));
    if (kind === 'sse') headers.push('cache-control', 'no-cache', 'x-accel-buffering', 'no');
    headers.push(...this.target.answerHeaders);
    const { trailStep } = this.target;
    if (trailStep !== null) {
      const before = trailOf(this.exchange.attempts);
      const step = `${trailStep}${this.status}`;
      headers.push('x-llm-proxy-attempts', String(this.attempt.number));
      headers.push('x-llm-proxy-trail', before === '' ? step : `${before},${step}`);
    }
    return headers;
  }
}

const SSE_OVERRIDDEN: ReadonlySet<string> = new Set(['content-length', 'cache-control', 'x-accel-buffering']);
const LENGTH_OVERRIDDEN: ReadonlySet<string> = new Set(['content-length']);

function overridden(options: CommitOptions): ReadonlySet<string> {
  const base = options.kind === 'sse' ? SSE_OVERRIDDEN : LENGTH_OVERRIDDEN;
  return options.contentType === undefined ? base : new Set([...base, 'content-type']);
}
