import { STREAM_INTERRUPTED } from '../../common/errors/catalogue.js';
import { SseEventTooLargeError } from '../../common/sse/sse-decoder.js';
import type { AttemptFailure } from '../../contracts/exchange.js';
import type { StreamPipeline } from '../stream-pipeline.js';
import type { AnswerHost, AnswerReader, CommitOptions } from './answer-reader.js';
import { StreamTail } from './stream-tail.js';

const BLANK_LINE = Buffer.from('\n\n');

export interface StreamAnswerOptions {
  readonly decoded: boolean;
  /** The body is coded and nobody must read it: bytes pass, nothing is looked at. */
  readonly opaque: boolean;
  readonly contentType?: string;
}

/** An SSE answer: sent on as it comes, from its first byte, through the pipeline of the attempt. */
export class StreamAnswerReader implements AnswerReader {
  readonly #tail = new StreamTail();
  readonly #pipeline: StreamPipeline | null;

  constructor(
    private readonly host: AnswerHost,
    private readonly options: StreamAnswerOptions,
  ) {
    this.#pipeline = options.opaque ? null : host.pipeline();
  }

  data(chunk: Buffer): boolean {
    this.#tail.saw(chunk);
    const first = !this.host.committed;
    if (first) this.host.commit(this.#commitOptions());
    let out: Buffer | readonly Buffer[] | null;
    try {
      out = this.#pipeline === null ? chunk : this.#pipeline.push(chunk);
    } catch (error) {
      if (!(error instanceof SseEventTooLargeError)) throw error;
      this.broken({
        result: 'net_err',
        status: this.host.status,
        reason: 'an event of the stream is too large',
      });
      return true;
    }
    if (out !== null) return this.host.sink.write(out);
    if (first) this.host.sink.flush();
    return true;
  }

  end(): void {
    if (!this.host.committed) this.host.commit(this.#commitOptions());
    this.host.sink.end(this.#pipeline?.end());
    this.host.finish('ok');
  }

  broken(failure: AttemptFailure): void {
    if (!this.host.committed) {
      this.host.fail(failure);
      return;
    }
    if (this.options.opaque) this.host.sink.cut();
    else this.host.sink.endInterrupted(this.#interruption());
    this.host.interrupted(failure, this.options.opaque ? 'content' : this.#tail.phase());
  }

  /** What was held back is true text of the upstream; then an open event is closed, then comes the error event. */
  #interruption(): Buffer {
    const pipeline = this.#pipeline;
    if (pipeline === null) return STREAM_INTERRUPTED;
    const held = flushed(pipeline);
    return Buffer.concat([...held, ...(pipeline.midEvent ? [BLANK_LINE] : []), STREAM_INTERRUPTED]);
  }

  #commitOptions(): CommitOptions {
    const { contentType, decoded } = this.options;
    const bodyChanged = decoded || (this.#pipeline?.transforming ?? false);
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
