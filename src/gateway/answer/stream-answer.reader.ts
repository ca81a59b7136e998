import { CUT_IN_EVENT, isCut } from '../../common/sse/open-event.js';
import { SseEvent } from '../../common/sse/sse-event.js';
import { StreamLimitError } from '../../common/sse/stream-limit.js';
import type { AttemptFailure } from '../../contracts/exchange.js';
import type { StreamPipeline } from '../stream-pipeline.js';
import { limitFailure } from './limit-failure.js';
import type { AnswerHost, AnswerReader, CommitOptions } from './answer-reader.js';
import { ErrorOpening } from './error-opening.js';
import { StreamTail } from './stream-tail.js';
import { beginsWithError } from './failure-watch.js';
import { StreamForm } from './stream-form.js';

export interface StreamAnswerOptions {
  readonly decoded: boolean;
  /** The body is coded and nobody must read it: bytes pass, nothing is looked at. */
  readonly opaque: boolean;
  readonly contentType?: string;
  /** Default: that of chat completions. */
  readonly form?: StreamForm;
  /** An error event at the very start is a failure of the attempt. */
  readonly errorsFail?: boolean;
  /** Hides our keys in an error at the very start. */
  readonly mask?: (bytes: Buffer) => Buffer;
}

/** An SSE answer: sent on as it comes, from its first byte, through the pipeline of the attempt. */
export class StreamAnswerReader implements AnswerReader {
  readonly #tail = new StreamTail();
  readonly #pipeline: StreamPipeline | null;
  readonly #form: StreamForm;
  /** Until the first bytes were sent. */
  #opening: ErrorOpening | null;
  #masked = false;

  constructor(
    private readonly host: AnswerHost,
    private readonly options: StreamAnswerOptions,
  ) {
    this.#pipeline = options.opaque ? null : host.pipeline();
    this.#form = options.form ?? new StreamForm('openai', '');
    this.#opening = options.opaque || options.mask === undefined ? null : new ErrorOpening(options.mask);
  }

  data(chunk: Buffer): boolean {
    if (this.#opening === null) return this.#push(chunk);
    const begun = this.#opening.take(chunk);
    return begun === null || this.#begin(begun);
  }

  #begin(bytes: Buffer): boolean {
    this.#masked = this.#opening?.changed === true;
    if (this.#opening?.over !== false) this.#opening = null;
    return this.#push(bytes);
  }

  #push(chunk: Buffer): boolean {
    this.#tail.saw(chunk);
    const first = !this.host.committed;
    if (first && this.options.errorsFail === true && beginsWithError(chunk)) {
      this.host.fail({ result: '5xx', status: this.host.status, reason: 'returned an error event' });
      return true;
    }
    let out: Buffer | readonly Buffer[] | null;
    try {
      out = this.#pipeline === null ? chunk : this.#pipeline.push(chunk);
    } catch (error) {
      if (first && error instanceof StreamLimitError) this.host.commit(this.#commitOptions());
      this.#tooMuch(error);
      return true;
    }
    // Only now: what a plugin throws before the first byte is an answer of its own.
    if (first) this.host.commit(this.#commitOptions());
    if (out !== null) {
      if (this.#form.watches) for (const piece of [out].flat()) this.#form.sent(piece);
      return this.host.sink.write(out);
    }
    if (first) this.host.sink.flush();
    return true;
  }

  end(): void {
    const held = this.#opening?.rest() ?? null;
    const open = held === null ? this.#pipeline?.openEvent : new SseEvent(held);
    if (open !== undefined && isCut(open)) {
      this.broken({ result: 'net_err', status: this.host.status, reason: CUT_IN_EVENT });
      return;
    }
    if (held !== null) this.#begin(held);
    let rest: readonly Buffer[] | undefined;
    try {
      rest = this.#pipeline?.end();
    } catch (error) {
      this.#tooMuch(error);
      return;
    }
    if (!this.host.committed) this.host.commit(this.#commitOptions());
    this.host.sink.end(rest);
    this.host.finish('ok');
  }

  broken(failure: AttemptFailure): void {
    if (this.host.committed && this.#isWhole) this.end();
    else this.#broken(failure);
  }

  #broken(failure: AttemptFailure): void {
    if (!this.host.committed) {
      this.host.fail(failure);
      return;
    }
    if (this.options.opaque) this.host.sink.cut(this.host.breakCause);
    else this.host.sink.endInterrupted(this.#interruption());
    this.host.interrupted(failure, this.options.opaque ? 'content' : this.#tail.phase());
  }

  /** All of the answer was there before it broke; but of a coded one only its end says that it is sound. */
  get #isWhole(): boolean {
    const { decoded, opaque } = this.options;
    const ours = this.host.breakCause === 'own_error';
    return !ours && !decoded && !opaque && this.#opening === null && this.#tail.done;
  }

  #tooMuch(error: unknown): void {
    if (!(error instanceof StreamLimitError)) throw error;
    this.#broken(limitFailure(error, this.host.status));
  }

  /** What was held back is true text of the upstream; then an open event is closed, then comes the error event. */
  #interruption(): Buffer {
    const pipeline = this.#pipeline;
    const event = this.#form.interruption(this.host.breakCause);
    if (pipeline === null) return event;
    const held = flushed(pipeline);
    return Buffer.concat([...held, ...pipeline.closing, event]);
  }

  #commitOptions(): CommitOptions {
    const { contentType, decoded } = this.options;
    const bodyChanged = decoded || this.#masked || (this.#pipeline?.transforming ?? false);
    return { kind: 'sse', bodyChanged, ...(contentType === undefined ? {} : { contentType }) };
  }
}

function flushed(pipeline: StreamPipeline): readonly Buffer[] {
  try {
    return pipeline.end(true);
  } catch {
    return [];
  }
}
