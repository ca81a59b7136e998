import { BACKSLASH, QUOTE } from './json-bytes.js';
import { QuoteSearch } from './quote-search.js';

/** A search costs about as much as looking at this many bytes here. */
const NEAR_BYTES = 16;

/** Finds where the strings of one text end, which comes in pieces cut anywhere. Looks at each byte a fixed number of times. */
export class StringEnd {
  readonly #search = new QuoteSearch();
  #escaped = false;

  /** The closing quote of the string that `from` is in; -1 where it goes on in the next piece. */
  next(chunk: Buffer, from: number, to: number): number {
    let i = this.#escaped ? from + 1 : from;
    for (;;) {
      const near = Math.min(i + NEAR_BYTES, to);
      while (i < near) {
        const byte = chunk[i];
        if (byte === QUOTE) {
          this.#escaped = false;
          return i;
        }
        i += byte === BACKSLASH ? 2 : 1;
      }
      if (i >= to) {
        this.#escaped = i > to;
        return -1;
      }
      const quote = this.#search.next(chunk, i, to);
      let even = quote;
      while (even > i && chunk[even - 1] === BACKSLASH) even--;
      const escaped = (quote - even) % 2 === 1;
      if (quote === to || !escaped) {
        this.#escaped = escaped;
        return quote === to ? -1 : quote;
      }
      i = quote + 1;
    }
  }

  /** Another piece follows. */
  release(): void {
    this.#search.release();
  }
}
