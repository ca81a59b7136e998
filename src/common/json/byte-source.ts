import { isUtf8 } from 'node:buffer';
import { SmallPieces } from '../bytes/small-pieces.js';
import { BACKSLASH, QUOTE } from './json-bytes.js';

/** Longer strings are decoded by `JSON.parse` at once instead of being looked through here. */
const PLAIN_TEXT_BYTES = 64;
const NO_BUFFERS: Buffer[] = [];
const NO_STARTS: number[] = [];

/**
 * Bytes that stand in several buffers one after the other, addressed as if they were one. Owns the list, never the
 * bytes: it copies only small ones, which it joins, and a slice that spans buffers. Grows by `append` while a body arrives.
 */
export class ByteSource {
  length = 0;
  // Trap: an array that grows from nothing by `push` has room for seventeen at once; nearly all bodies come in one piece.
  #buffers: Buffer[] = NO_BUFFERS;
  #starts: number[] = NO_STARTS;
  #pieces: SmallPieces | null = null;

  static of(buffers: Buffer | readonly Buffer[]): ByteSource {
    const source = new ByteSource();
    if (Buffer.isBuffer(buffers)) source.append(buffers);
    else for (const buffer of buffers) source.append(buffer);
    return source;
  }

  append(buffer: Buffer): void {
    if (buffer.length === 0) return;
    if (this.length === 0) {
      this.#buffers = [buffer];
      this.#starts = [0];
    } else {
      const last = this.#buffers.length - 1;
      const joined = (this.#pieces ??= new SmallPieces()).join(this.#buffers[last] as Buffer, buffer);
      if (joined === null) {
        this.#buffers.push(buffer);
        this.#starts.push(this.length);
      } else this.#buffers[last] = joined;
    }
    this.length += buffer.length;
  }

  /** Calls back with each piece of the range: the buffer, the place in it, and the offset of the buffer's first byte. */
  each(
    start: number,
    end: number,
    visit: (buffer: Buffer, from: number, to: number, base: number) => void,
  ): void {
    for (let i = this.#locate(start), at = start; at < end; i++) {
      const buffer = this.#buffers[i] as Buffer;
      const base = this.#starts[i] as number;
      const to = Math.min(end - base, buffer.length);
      visit(buffer, at - base, to, base);
      at = base + to;
    }
  }

  byteAt(offset: number): number {
    const i = this.#locate(offset);
    return (this.#buffers[i] as Buffer)[offset - (this.#starts[i] as number)] as number;
  }

  /** A view of the bytes; a copy only where they span buffers. */
  slice(start: number, end: number): Buffer {
    const i = this.#locate(start);
    const buffer = this.#buffers[i];
    if (buffer === undefined) return Buffer.alloc(0);
    const base = this.#starts[i] as number;
    if (end - base <= buffer.length) return buffer.subarray(start - base, end - base);
    const pieces: Buffer[] = [];
    this.each(start, end, (piece, from, to) => pieces.push(piece.subarray(from, to)));
    return Buffer.concat(pieces, end - start);
  }

  text(start: number, end: number, encoding: 'utf8' | 'latin1'): string {
    const i = this.#locate(start);
    const buffer = this.#buffers[i] as Buffer;
    const base = this.#starts[i] as number;
    if (end - base <= buffer.length) return buffer.toString(encoding, start - base, end - base);
    return this.slice(start, end).toString(encoding);
  }

  /** The text between the quotes of a short string of ASCII without escapes; undefined for any other. */
  plainText(start: number, end: number): string | undefined {
    const i = this.#locate(start);
    const buffer = this.#buffers[i] as Buffer;
    const base = this.#starts[i] as number;
    const first = start - base + 1;
    const last = end - base - 1;
    if (last - first > PLAIN_TEXT_BYTES || last >= buffer.length || buffer[last] !== QUOTE) return undefined;
    for (let at = first; at < last; at++) {
      const byte = buffer[at] as number;
      if (byte < 0x20 || byte > 0x7e || byte === BACKSLASH) return undefined;
    }
    return buffer.toString('latin1', first, last);
  }

  isUtf8(start: number, end: number): boolean {
    const i = this.#locate(start);
    const buffer = this.#buffers[i] as Buffer;
    const base = this.#starts[i] as number;
    let at = start - base;
    const last = Math.min(end - base, buffer.length);
    while (at < last && (buffer[at] as number) < 0x80) at++;
    return at === end - base || isUtf8(this.slice(start, end));
  }

  /** Whether the bytes from `start` on are this text of ASCII only. */
  matches(start: number, ascii: string): boolean {
    const i = this.#locate(start);
    let buffer = this.#buffers[i] as Buffer;
    let at = start - (this.#starts[i] as number);
    if (at + ascii.length > buffer.length) {
      buffer = this.slice(start, start + ascii.length);
      at = 0;
    }
    for (let k = 0; k < ascii.length; k++) if (buffer[at + k] !== ascii.charCodeAt(k)) return false;
    return true;
  }

  #locate(offset: number): number {
    const starts = this.#starts;
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((starts[middle] as number) <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}
