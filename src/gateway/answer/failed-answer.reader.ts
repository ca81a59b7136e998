import type { AttemptFailure } from '../../contracts/exchange.js';
import type { AnswerHost, AnswerReader } from './answer-reader.js';

/** A failed answer's body is read so far, that its connection can serve again… */
const DRAIN_LIMIT_BYTES = 64 * 1024;
/** …and no longer, because a client is waiting for the next upstream. */
const DRAIN_LIMIT_MS = 250;

/** Reads the body of an answer that counts as a failure, then fails the attempt. */
export class FailedAnswerReader implements AnswerReader {
  #bytes = 0;
  readonly #timer: NodeJS.Timeout;
  #done = false;

  constructor(
    private readonly host: AnswerHost,
    private readonly failure: AttemptFailure,
  ) {
    this.#timer = setTimeout(() => this.#finish(), DRAIN_LIMIT_MS);
  }

  data(chunk: Buffer): boolean {
    this.#bytes += chunk.length;
    if (this.#bytes > DRAIN_LIMIT_BYTES) this.#finish();
    return true;
  }

  end(): void {
    this.#finish();
  }

  broken(): void {
    this.#finish();
  }

  stop(): void {
    this.#done = true;
    clearTimeout(this.#timer);
  }

  #finish(): void {
    if (this.#done) return;
    this.#done = true;
    clearTimeout(this.#timer);
    this.host.fail(this.failure);
  }
}
