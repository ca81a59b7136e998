import { BACKSLASH, isSpace, QUOTE } from '../../common/json/json-bytes.js';
import { ByteBlocks } from './byte-blocks.js';

const QUOTE_BYTES = Buffer.from([QUOTE]);
const SLICE_BYTES = 64 * 1024;

/** A text made of pieces, as the bytes of its JSON: the escapes of each piece stay as they are. Owns copies of them. */
export class JoinedText {
  readonly #bytes = new ByteBlocks();

  get empty(): boolean {
    return this.#bytes.length === 0;
  }

  /** Of a JSON string its text. */
  add(raw: Buffer): void {
    this.#bytes.add(raw, 1, raw.length - 1);
  }

  /** Of any other JSON value its JSON, without white space between its tokens. */
  addJson(raw: Buffer): void {
    const slice = Buffer.allocUnsafe(Math.min(2 * raw.length + 2, SLICE_BYTES));
    let used = 0;
    let quoted = false;
    let escaped = false;
    for (const byte of raw) {
      if (!quoted && isSpace(byte)) continue;
      if (byte === QUOTE || byte === BACKSLASH) slice[used++] = BACKSLASH;
      slice[used++] = byte;
      if (byte === QUOTE && !escaped) quoted = !quoted;
      escaped = byte === BACKSLASH && !escaped;
      if (used < slice.length - 1) continue;
      this.#bytes.add(slice, 0, used);
      used = 0;
    }
    this.#bytes.add(slice, 0, used);
  }

  into(parts: Buffer[]): void {
    parts.push(QUOTE_BYTES);
    this.#bytes.into(parts);
    parts.push(QUOTE_BYTES);
  }
}
