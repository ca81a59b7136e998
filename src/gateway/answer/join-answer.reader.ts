import { JsonDocument } from '../../common/json/json-document.js';
import { CUT_IN_EVENT, isCut } from '../../common/sse/open-event.js';
import { hasForeignLine } from '../../common/sse/foreign-line.js';
import { SseDecoder } from '../../common/sse/sse-decoder.js';
import { StreamLimitError } from '../../common/sse/stream-limit.js';
import type { AttemptFailure } from '../../contracts/exchange.js';
import type { SseEvent } from '../../common/sse/sse-event.js';
import { CompletionJoiner } from '../joining/completion-joiner.js';
import type { ErrorJudge } from './error-judge.js';
import { MEANINGFUL, meaningOf } from './chunk-meaning.js';
import { limitFailure } from './limit-failure.js';
import type { AnswerHost, AnswerReader } from './answer-reader.js';

const LIMIT_BYTES = 64 * 1024 * 1024;

/** An SSE answer to a client that asked for no stream: its events are joined into one `chat.completion`. */
export class JoinAnswerReader implements AnswerReader {
  readonly #decoder = new SseDecoder();
  readonly #joiner = new CompletionJoiner();
  #bytes = 0;
  #over = false;

  #awaited: boolean;

  /** `awaited`: somebody waits for the first meaningful event. `decoded`: the bytes were coded on their way here. */
  constructor(
    private readonly host: AnswerHost,
    private readonly judge: ErrorJudge | null,
    awaited: boolean,
    private readonly decoded = false,
  ) {
    this.#awaited = awaited;
  }

  data(chunk: Buffer): boolean {
    if (this.#over || this.#joiner.done) return true;
    this.#bytes += chunk.length;
    if (this.#bytes > LIMIT_BYTES) {
      this.#fail('answer larger than 64 MiB');
      return true;
    }
    try {
      this.#decoder.push(chunk, (event) => this.#joined(event));
    } catch (error) {
      this.#tooMuch(error);
    }
    const { fault } = this.#joiner;
    if (fault !== null) this.#fail(fault);
    return true;
  }

  end(): void {
    if (this.#over) return;
    // An event without its blank line may be whole; one that is half an object tells that the answer was cut.
    let cut = false;
    try {
      this.#decoder.end((event) => {
        cut = !this.#joiner.done && isCut(event);
        if (!cut) this.#push(event);
      });
    } catch (error) {
      this.#tooMuch(error);
      return;
    }
    if (cut) this.#fail(CUT_IN_EVENT);
    if (this.#over) return;
    const told = this.#joiner.errorObject;
    if (told !== undefined && this.judge !== null) {
      this.judge.inside(told);
      return;
    }
    if (this.#joiner.error || this.#joiner.interrupted) {
      this.host.fail({ result: '5xx', status: this.host.status, reason: 'returned an error event' });
      return;
    }
    const { fault } = this.#joiner;
    if (fault !== null) {
      this.#fail(fault);
      return;
    }
    const joined = this.#joiner.result();
    // Bytes that are no UTF-8, and objects as arguments, come out longer than they went in.
    if (joined.length > LIMIT_BYTES) {
      this.#fail('answer larger than 64 MiB');
      return;
    }
    const document = JsonDocument.parse(joined);
    this.host.whole(document);
    const body = document.toBuffer();
    this.host.commit({
      kind: 'json',
      bodyChanged: true,
      contentLength: body.length,
      contentType: 'application/json; charset=utf-8',
    });
    this.host.sink.end(body);
    this.host.finish('ok');
  }

  broken(failure: AttemptFailure): void {
    // All of the answer was there, whatever became of its connection; but of a coded one only its end says that it is sound.
    if (this.#joiner.done && !this.decoded) this.end();
    else this.host.fail(failure);
  }

  #joined(event: SseEvent): void {
    if (this.#awaited && (meaningOf(event) & MEANINGFUL) !== 0) {
      this.#awaited = false;
      this.host.tokenSeen();
    }
    this.#push(event);
  }

  /** What a reader of streams would pass over may be the error that ended the answer, or the answer itself. */
  #push(event: SseEvent): void {
    if (!this.#joiner.done && hasForeignLine(event)) this.#fail('stream with lines that are no event');
    else this.#joiner.push(event);
  }

  #tooMuch(error: unknown): void {
    if (!(error instanceof StreamLimitError)) throw error;
    this.#failed(limitFailure(error, this.host.status));
  }

  #fail(reason: string): void {
    this.#failed({ result: 'net_err', status: this.host.status, reason });
  }

  #failed(failure: AttemptFailure): void {
    if (this.#over) return;
    this.#over = true;
    this.host.fail(failure);
  }
}
