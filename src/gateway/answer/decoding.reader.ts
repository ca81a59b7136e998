import type { Transform } from 'node:stream';
import { createDecoder } from '../../common/http/content-coding.js';
import type { AttemptFailure } from '../../contracts/exchange.js';
import type { AnswerReader } from './answer-reader.js';

const LIMIT_BYTES = 64 * 1024 * 1024;

/** Puts a decoder before another reader. A broken coding, or more than 64 MiB decoded, breaks the answer. */
export class DecodingReader implements AnswerReader {
  #decoder: Transform | null = null;
  #bytes = 0;
  #over = false;

  constructor(
    private readonly inner: AnswerReader,
    private readonly coding: string,
    private readonly status: number,
    private readonly resume: () => void,
    private readonly crashed: ((error: unknown) => void) | null = null,
  ) {}

  data(chunk: Buffer): boolean {
    if (this.#over) return true;
    this.#decoder ??= this.#open(chunk);
    return this.#decoder.write(chunk);
  }

  end(): void {
    if (this.#decoder === null) this.#finish(() => this.inner.end());
    else this.#decoder.end();
  }

  broken(failure: AttemptFailure): void {
    this.#finish(() => this.inner.broken(failure));
  }

  /** The client took what was waiting. */
  drained(): boolean {
    this.inner.drained?.();
    this.#decoder?.resume();
    // The decoder asks for more when it has taken what it holds.
    return this.#decoder !== null;
  }

  #open(firstChunk: Buffer): Transform {
    const decoder = createDecoder(this.coding, firstChunk);
    // Trap: what the inner reader throws here would reach nobody but the process.
    decoder.on('data', (chunk: Buffer) => this.#safely(() => this.#decoded(chunk)));
    decoder.on('end', () => this.#safely(() => this.#finish(() => this.inner.end())));
    decoder.on('error', () => this.#fail('answer with a broken content coding'));
    decoder.on('drain', () => this.resume());
    return decoder;
  }

  #decoded(chunk: Buffer): void {
    if (this.#over) return;
    this.#bytes += chunk.length;
    if (this.#bytes > LIMIT_BYTES) this.#fail('decoded answer larger than 64 MiB');
    // The inner reader's wish for a pause holds the decoder, which then holds the upstream.
    else if (!this.inner.data(chunk)) this.#decoder?.pause();
  }

  stop(): void {
    this.#over = true;
    this.inner.stop?.();
    this.#decoder?.destroy();
  }

  #safely(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (this.crashed !== null) this.crashed(error);
      else this.#fail('the answer could not be read');
    }
  }

  #fail(reason: string): void {
    this.#finish(() => this.inner.broken({ result: 'net_err', status: this.status, reason }));
  }

  #finish(last: () => void): void {
    if (this.#over) return;
    this.#over = true;
    try {
      last();
    } catch (error) {
      // The inner reader is still to be told that the answer broke.
      this.#over = false;
      throw error;
    }
    this.#decoder?.destroy();
  }
}
