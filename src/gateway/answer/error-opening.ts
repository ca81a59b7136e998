import { endsEvent } from '../../common/sse/sse-decoder.js';

const DATA_FIELD = Buffer.from('data:');
const ERROR_KEY = Buffer.from('"error"');
const BLANK_LINES = ['\n\n', '\r\n\r\n', '\r\r'].map((text) => Buffer.from(text));
/** An error that is longer goes on in pieces. */
const HOLD_LIMIT_BYTES = 64 * 1024;

/**
 * Masks our keys in what a stream begins with where that tells of an error: providers quote the key that they refuse.
 * Sees the first bytes of an answer only; what comes later is never searched. Such a beginning is held until its event is
 * whole, so that a key that was cut is found.
 */
export class ErrorOpening {
  #held: Buffer | null = null;
  /** What it gave is not what came. */
  changed = false;
  /** Something was said; what comes now is no beginning. Comments and names of events say nothing. */
  over = false;

  constructor(private readonly mask: (bytes: Buffer) => Buffer) {}

  /** What is to be sent of the beginning; null where more of it must come first. */
  take(chunk: Buffer): Buffer | null {
    const held = this.#held;
    if (held === null && !chunk.includes(ERROR_KEY)) {
      this.over ||= chunk.includes(DATA_FIELD);
      return chunk;
    }
    const bytes = held === null ? chunk : Buffer.concat([held, chunk]);
    if (bytes.length < HOLD_LIMIT_BYTES && !holdsEvent(bytes)) {
      this.#held = bytes;
      return null;
    }
    return this.#masked(bytes);
  }

  /** The answer is over: what is still held, or null. */
  rest(): Buffer | null {
    return this.#held === null ? null : this.#masked(this.#held);
  }

  #masked(bytes: Buffer): Buffer {
    this.#held = null;
    this.over = true;
    const masked = this.mask(bytes);
    this.changed = masked !== bytes;
    return masked;
  }
}

function holdsEvent(bytes: Buffer): boolean {
  return endsEvent(bytes) || BLANK_LINES.some((blank) => bytes.includes(blank));
}
