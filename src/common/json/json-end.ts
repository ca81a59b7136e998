import { BACKSLASH, CLOSE_ARRAY, CLOSE_OBJECT, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from './json-bytes.js';

/**
 * Tells whether a JSON text fed in pieces has come to its end: its brackets are balanced and its strings closed. Checks
 * no grammar and keeps no bytes; lives for one text.
 */
export class JsonEnd {
  #depth = 0;
  #begun = false;
  #inString = false;
  #escaped = false;

  /** A number or a word at the top level may always have been longer: it counts as whole. */
  get reached(): boolean {
    return this.#begun && this.#depth === 0 && !this.#inString;
  }

  /** Within an object, a list or a text. */
  get inside(): boolean {
    return this.#depth > 0 || this.#inString;
  }

  push(chunk: Buffer): void {
    let i = 0;
    while (i < chunk.length) {
      if (this.#inString) {
        i = this.#string(chunk, i);
        continue;
      }
      const byte = chunk[i++] as number;
      if (byte === QUOTE) this.#inString = true;
      else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) this.#depth++;
      else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) this.#depth--;
      if (byte > 0x20) this.#begun = true;
    }
  }

  /** To behind the quote that closes the string, or to the end of the chunk. */
  #string(chunk: Buffer, from: number): number {
    let i = from;
    while (i < chunk.length) {
      const byte = chunk[i++] as number;
      if (this.#escaped) this.#escaped = false;
      else if (byte === BACKSLASH) this.#escaped = true;
      else if (byte === QUOTE) {
        this.#inString = false;
        break;
      }
    }
    return i;
  }
}
