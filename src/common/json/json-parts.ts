import type { ByteSource } from './byte-source.js';

/** A document below this is handed on as one buffer: one copy is cheaper than several writes. */
const ONE_BUFFER_BYTES = 16 * 1024;
/** A piece of this size is handed on as it is; smaller neighbours are copied together. */
const LARGE_PIECE_BYTES = 8 * 1024;

/** Collects the pieces of one rendered document and makes few buffers of them. Lives for one rendering. */
export class JsonParts {
  readonly #buffers: Buffer[] = [];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  #length = 0;

  add(buffer: Buffer, start = 0, end = buffer.length): void {
    if (start >= end) return;
    this.#length += end - start;
    const last = this.#buffers.length - 1;
    if (this.#buffers[last] === buffer && this.#ends[last] === start) {
      this.#ends[last] = end;
      return;
    }
    this.#buffers.push(buffer);
    this.#starts.push(start);
    this.#ends.push(end);
  }

  addRange(source: ByteSource, start: number, end: number): void {
    source.each(start, end, (buffer, from, to) => this.add(buffer, from, to));
  }

  build(): Buffer[] {
    const count = this.#buffers.length;
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
    return (this.#ends[i] as number) - (this.#starts[i] as number);
  }

  #slice(i: number): Buffer {
    const buffer = this.#buffers[i] as Buffer;
    return this.#size(i) === buffer.length ? buffer : buffer.subarray(this.#starts[i], this.#ends[i]);
  }

  #join(first: number, next: number, bytes: number): Buffer {
    const target = Buffer.allocUnsafe(bytes);
    for (let i = first, at = 0; i < next; i++) {
      at += (this.#buffers[i] as Buffer).copy(target, at, this.#starts[i], this.#ends[i]);
    }
    return target;
  }
}
