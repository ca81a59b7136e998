import type { ByteSource } from './byte-source.js';

/** A document below this is handed on as one buffer: one copy is cheaper than several writes. */
const ONE_BUFFER_BYTES = 16 * 1024;
/** A piece of this size is handed on as it is; smaller neighbours are copied together. */
const LARGE_PIECE_BYTES = 8 * 1024;

/** Collects the pieces of one rendered document and makes few buffers of them. Lives for one rendering. */
export class JsonParts {
  // Buffer, start and end of each piece one after the other: an array has room for seventeen at once.
  readonly #pieces: (Buffer | number)[] = [];
  #length = 0;

  add(buffer: Buffer, start = 0, end = buffer.length): void {
    if (start >= end) return;
    const pieces = this.#pieces;
    this.#length += end - start;
    const next = pieces.length;
    if (next > 0 && pieces[next - 3] === buffer && pieces[next - 1] === start) pieces[next - 1] = end;
    else pieces.push(buffer, start, end);
  }

  addRange(source: ByteSource, start: number, end: number): void {
    source.each(start, end, (buffer, from, to) => this.add(buffer, from, to));
  }

  build(): Buffer[] {
    const count = this.#pieces.length / 3;
    if (count === 1) return [this.#slice(0)];
    if (this.#length < ONE_BUFFER_BYTES) return [this.#join(0, count, this.#length)];
    const parts: Buffer[] = [];
    for (let first = 0; first < count;) {
      let next = first;
      let bytes = 0;
      while (next < count && this.#size(next) < LARGE_PIECE_BYTES) bytes += this.#size(next++);
      if (next - first > 1) parts.push(this.#join(first, next, bytes));
      else parts.push(this.#slice((next = first)));
      first = Math.max(next, first + 1);
    }
    return parts;
  }

  #size(i: number): number {
    return this.#end(i) - this.#start(i);
  }

  #slice(i: number): Buffer {
    const buffer = this.#buffer(i);
    return this.#size(i) === buffer.length ? buffer : buffer.subarray(this.#start(i), this.#end(i));
  }

  #join(first: number, next: number, bytes: number): Buffer {
    const target = Buffer.allocUnsafe(bytes);
    for (let i = first, at = 0; i < next; i++) {
      at += this.#buffer(i).copy(target, at, this.#start(i), this.#end(i));
    }
    return target;
  }

  #buffer(i: number): Buffer {
    return this.#pieces[i * 3] as Buffer;
  }

  #start(i: number): number {
    return this.#pieces[i * 3 + 1] as number;
  }

  #end(i: number): number {
    return this.#pieces[i * 3 + 2] as number;
  }
}
