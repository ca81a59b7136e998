import { ChunkList } from '../../common/bytes/chunk-list.js';
import type { AttemptFailure } from '../../contracts/exchange.js';
import type { AnswerHost, AnswerReader } from './answer-reader.js';
import type { BodyCoding, ErrorJudge } from './error-judge.js';

/** What may pass to the client is read up to here. */
const LIMIT_BYTES = 1024 * 1024;
/** What cannot pass is read so far, and no longer, because a client is waiting for the next key or upstream. */
const DRAIN_LIMIT_BYTES = 64 * 1024;
const DRAIN_LIMIT_MS = 500;
/** What could pass, but most likely will not, is waited for a little longer. */
const DOUBTFUL_LIMIT_MS = 2000;

/** Reads an answer with an error status so far that its class can be told, then leaves it to the judge. */
export class ClassifiedErrorReader implements AnswerReader {
  readonly #held = new ChunkList();
  #over = false;
  readonly #limitBytes: number;
  readonly #timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly host: AnswerHost,
    private readonly judge: ErrorJudge,
    private readonly coding: BodyCoding,
  ) {
    const { status } = host;
    const fails = status === 429 || status === 402 || status >= 500;
    this.#limitBytes = fails ? DRAIN_LIMIT_BYTES : LIMIT_BYTES;
    const limitMs = fails ? DRAIN_LIMIT_MS : DOUBTFUL_LIMIT_MS;
    if (isKnownBy(status)) this.#timer = setTimeout(() => this.#finish(false), limitMs);
  }

  data(chunk: Buffer): boolean {
    if (this.#over) return true;
    this.#held.push(chunk);
    if (this.#held.length > this.#limitBytes) this.#finish(false);
    return true;
  }

  end(): void {
    this.#finish(true);
  }

  /** Half an error is enough to know whose fault it is, unless it is one that would have to be passed on whole. */
  broken(failure: AttemptFailure): void {
    if (isKnownBy(this.host.status)) this.#finish(false);
    else if (!this.#over) this.host.fail(failure);
  }

  stop(): void {
    this.#over = true;
    this.#held.take();
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #finish(complete: boolean): void {
    if (this.#over) return;
    const body = this.#held.concat();
    this.stop();
    this.judge.judge({ body, complete, coding: this.coding });
  }
}

/** The status tells whose fault it is, nearly always. */
function isKnownBy(status: number): boolean {
  return (status >= 401 && status <= 404) || status === 429 || status >= 500;
}
