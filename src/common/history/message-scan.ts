import { ByteSource } from '../json/byte-source.js';
import { OPEN_ARRAY } from '../json/json-bytes.js';
import { JsonScanner } from '../json/json-scanner.js';

const STEP_BYTES = 8 * 1024;

/**
 * The items of a JSON array, found only as far as somebody asks: the messages in front of the first user message, or
 * those behind a history that is known already. Lives for one computation.
 */
export class MessageScan {
  readonly #source: ByteSource;
  readonly #scanner: JsonScanner;
  #fed = 0;

  /** @param array the bytes of one JSON array */
  constructor(array: Buffer | readonly Buffer[]) {
    this.#source = ByteSource.of(array);
    this.#scanner = new JsonScanner(this.#source, OPEN_ARRAY);
  }

  /** The i-th item, or undefined beyond the last. @throws JsonSyntaxError as soon as the array is seen to be broken */
  item(i: number): Buffer | undefined {
    return this.#reach(i) ? this.#source.slice(this.start(i), this.end(i)) : undefined;
  }

  /** Of an item that was asked for. */
  start(i: number): number {
    return this.#scanner.at(2 * i);
  }

  end(i: number): number {
    return this.#scanner.at(2 * i + 1);
  }

  #reach(i: number): boolean {
    const { length } = this.#source;
    while (this.#scanner.count < 2 * i + 2) {
      if (this.#fed === length) {
        this.#scanner.finish(length);
        return false;
      }
      const to = Math.min(length, this.#fed + STEP_BYTES);
      // Trap: a search for the end of a string runs to the end of the buffer, step by step over all that is left.
      this.#source.each(this.#fed, to, (buffer, from, end, base) =>
        this.#scanner.feed(buffer.subarray(from, end), 0, end - from, base + from),
      );
      this.#fed = to;
    }
    return true;
  }
}
