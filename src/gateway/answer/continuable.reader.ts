import { streamInterrupted } from '../../common/errors/error-form.js';
import { isDone } from '../../common/sse/done-event.js';
import { CUT_IN_EVENT, isWhole } from '../../common/sse/open-event.js';
import type { SseEvent } from '../../common/sse/sse-event.js';
import { StreamLimitError } from '../../common/sse/stream-limit.js';
import type { AttemptFailure } from '../../contracts/exchange.js';
import type { RelayedAnswer } from '../continuation/relayed-answer.js';
import type { SeamTransform } from '../continuation/seam.transform.js';
import type { StreamPipeline } from '../stream-pipeline.js';
import { limitFailure } from './limit-failure.js';
import type { AnswerHost, AnswerReader, CommitOptions } from './answer-reader.js';
import { Brings, meaningOf } from './chunk-meaning.js';

const SWITCHED = Buffer.from(': llm-proxy switched upstream\n\n');
const DONE = Buffer.from('data: [DONE]\n\n');

export interface ContinuableOptions {
  readonly answer: RelayedAnswer;
  readonly seam: SeamTransform;
  /** Hides our keys in an error at the very start. */
  readonly mask?: (bytes: Buffer) => Buffer;
  /** Content type to send where the upstream named none. */
  readonly contentType?: string;
}

/**
 * An SSE answer that another upstream may go on with, or that itself goes on with another's: whole events only, through
 * the pipeline of the attempt, whose last stage is the seam. A continuation says nothing before it has something to say,
 * so that until then it can be replaced by the next.
 */
export class ContinuableReader implements AnswerReader {
  readonly #pipeline: StreamPipeline;
  readonly #continuing: boolean;
  #over = false;
  /** The first bytes of the upstream came. */
  #seen = false;

  constructor(
    private readonly host: AnswerHost,
    private readonly options: ContinuableOptions,
  ) {
    this.#continuing = options.answer.begun;
    this.#pipeline = host.pipeline();
    this.#pipeline.filter((event) => options.seam.admits(event));
  }

  data(chunk: Buffer): boolean {
    if (this.#over) return true;
    const first = !this.host.committed && !this.#continuing;
    let out: Buffer | readonly Buffer[] | null;
    try {
      out = this.#pipeline.push(this.#seen ? chunk : this.#opening(chunk));
    } catch (error) {
      if (first && error instanceof StreamLimitError) this.host.commit(this.#commitOptions());
      this.#tooMuch(error);
      return true;
    }
    // Only now: what a plugin throws before the first byte is an answer of its own.
    if (first) this.host.commit(this.#commitOptions());
    let more = true;
    if (out !== null) more = this.#write([out].flat());
    else if (first) this.host.sink.flush();
    if (this.options.seam.errorSeen) this.broken(this.#failure('5xx', 'sent an error event'));
    return more;
  }

  end(): void {
    if (this.#over) return;
    const open = this.#pipeline.openEvent;
    if (open !== undefined && !this.options.seam.admits(open)) {
      this.broken(this.#failure('5xx', 'sent an error event'));
      return;
    }
    if (open !== undefined && !isWhole(open)) {
      this.broken(this.#failure('net_err', CUT_IN_EVENT));
      return;
    }
    let rest: readonly Buffer[];
    try {
      rest = this.#pipeline.end();
    } catch (error) {
      this.#tooMuch(error);
      return;
    }
    if (this.options.seam.errorSeen) {
      if (rest.length > 0) this.#write(rest);
      this.broken(this.#failure('5xx', 'sent an error event'));
      return;
    }
    if (this.#continuing && !this.host.committed && rest.length === 0) {
      this.#over = true;
      this.host.fail(this.#failure('net_err', 'ended without going on'));
      return;
    }
    this.#over = true;
    if (!this.host.committed) this.host.commit(this.#commitOptions());
    this.host.sink.end(rest);
    this.host.finish('ok');
  }

  broken(failure: AttemptFailure): void {
    if (this.#over) return;
    this.#over = true;
    if (!this.host.committed) {
      this.host.fail(failure);
      return;
    }
    const { answer, seam } = this.options;
    const { closing } = this.#pipeline;
    const last = this.#flushed();
    if (answer.continuable && this.host.continuable && !seam.late.some(endsAnswer)) {
      // Trap: the client does not have it, and half a tag is no text yet. Who goes on says it anew, from what the client has.
      answer.withheld = last;
      if (closing.length > 0) this.host.sink.write(closing);
      this.host.suspended(failure, answer.phase);
      return;
    }
    for (const event of seam.late) answer.sent(event);
    if (answer.finished && this.host.breakCause !== 'own_error') {
      const { doneSent } = answer;
      this.host.sink.end(doneSent ? last : [...last, DONE]);
      // All of the answer was there before it broke.
      if (doneSent) this.host.finish('ok');
      else this.host.interrupted(failure, answer.phase);
    } else {
      this.host.sink.endInterrupted(Buffer.concat([...last, streamInterrupted(this.host.breakCause)]));
      this.host.interrupted(failure, answer.phase);
    }
  }

  stop(): void {
    this.#over = true;
  }

  #opening(chunk: Buffer): Buffer {
    this.#seen = true;
    const { mask } = this.options;
    return mask === undefined || !chunk.includes('"error"') ? chunk : mask(chunk);
  }

  #write(out: readonly Buffer[]): boolean {
    if (this.host.committed) return this.host.sink.write(out);
    this.host.commit(this.#commitOptions());
    this.options.answer.withheld = [];
    return this.host.sink.write([SWITCHED, ...out]);
  }

  /** What was held back, and is true text of the upstream where nobody goes on; an event that never became whole is none. */
  #flushed(): Buffer[] {
    this.options.seam.broken = true;
    let held: readonly Buffer[] = [];
    try {
      held = this.#pipeline.end(true);
    } catch {
      // A stage that fails here has said so in the log; what it held is lost, and so is the answer after it.
      this.options.answer.spoil();
      this.options.seam.late.length = 0;
    }
    return [...held, ...this.#pipeline.closing];
  }

  #tooMuch(error: unknown): void {
    if (!(error instanceof StreamLimitError)) throw error;
    this.broken(limitFailure(error, this.host.status));
  }

  #failure(result: '5xx' | 'net_err', reason: string): AttemptFailure {
    return { result, status: this.host.status, reason };
  }

  #commitOptions(): CommitOptions {
    const { contentType } = this.options;
    return { kind: 'sse', bodyChanged: true, ...(contentType === undefined ? {} : { contentType }) };
  }
}

function endsAnswer(event: SseEvent): boolean {
  return isDone(event) || (meaningOf(event) & Brings.finishReason) !== 0;
}
