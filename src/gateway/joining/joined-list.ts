import { isSpace } from '../../common/json/json-bytes.js';
import { ByteBlocks } from './byte-blocks.js';
import { type Written, writeInto } from './json-written.js';

const OPEN = Buffer.from('[');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from(']');

/** A list made of lists one behind the other. Owns a copy of the bytes of their items, which it never looks into. */
export class JoinedList {
  readonly #bytes = new ByteBlocks();

  /** The items of one more list. */
  add(raw: Buffer): void {
    let start = 1;
    let end = raw.length - 1;
    while (start < end && isSpace(raw[start] as number)) start++;
    while (start < end && isSpace(raw[end - 1] as number)) end--;
    if (start === end) return;
    if (this.#bytes.length > 0) this.#bytes.add(COMMA);
    this.#bytes.add(raw, start, end);
  }

  into(parts: Buffer[]): void {
    this.intoWith(parts, null);
  }

  /** With one more item at the end. */
  intoWith(parts: Buffer[], last: Written | null): void {
    parts.push(OPEN);
    this.#bytes.into(parts);
    if (last !== null) {
      if (this.#bytes.length > 0) parts.push(COMMA);
      writeInto(parts, last);
    }
    parts.push(CLOSE);
  }
}
