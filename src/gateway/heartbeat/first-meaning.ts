import { SseDecoder, SseEventTooLargeError } from '../../common/sse/sse-decoder.js';
import type { SseEvent } from '../../common/sse/sse-event.js';
import { Brings, MEANINGFUL, meaningOf } from '../answer/chunk-meaning.js';

/** An error too: it is the last thing such a stream says. */
const ANYTHING = MEANINGFUL | Brings.error;

/** What says nothing for so long is no sign of life. */
const LIMIT_BYTES = 64 * 1024;

/** Looks for the first event of a stream that means something to a client. Lives until it has come. */
export class FirstMeaning {
  readonly #decoder = new SseDecoder(LIMIT_BYTES);
  #found = false;

  /** True once it has come: nothing need be looked at any more. */
  in(chunk: Buffer): boolean {
    try {
      this.#decoder.push(chunk, (event) => this.#look(event));
    } catch (error) {
      if (!(error instanceof SseEventTooLargeError)) throw error;
      this.#found = true;
    }
    return this.#found;
  }

  #look(event: SseEvent): void {
    this.#found ||= (meaningOf(event) & ANYTHING) !== 0;
  }
}
