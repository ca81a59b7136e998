import type { ByteSource } from './byte-source.js';

/** A piece of this size is handed on as it is; smaller ones are copied together. */
const LARGE_PIECE_BYTES = 8 * 1024;
const BLOCK_BYTES = 64 * 1024;
const SPARE_BYTES = 1024;

/**
 * The bytes of one value with other bytes in some places, written from the front to the back. Costs nothing for each
 * place but its bytes, however many there are. Lives for one rewriting; never writes into what it was given.
 */
export class JsonRewrite {
  readonly #parts: Buffer[] = [];
  #block: Buffer | null = null;
  #blockStart = 0;
  #used = 0;
  #cursor: number;

  constructor(
    private readonly source: ByteSource,
    start: number,
    private readonly end: number,
  ) {
    this.#cursor = start;
  }

  /** All up to here stays as it is. Never goes back. */
  keep(to: number): void {
    if (to <= this.#cursor) return;
    this.copy(this.#cursor, to);
    this.#cursor = to;
  }

  /** What stands up to here is left out. */
  skip(to: number): void {
    this.#cursor = to;
  }

  /** Bytes of the source, from wherever they stand in it. */
  copy(from: number, to: number): void {
    this.source.each(from, to, (buffer, first, end) => this.#put(buffer, first, end));
  }

  add(bytes: Buffer): void {
    this.#put(bytes, 0, bytes.length);
  }

  /** The rest stays as it is: all pieces, in order. */
  finish(): readonly Buffer[] {
    this.keep(this.end);
    this.#close();
    return this.#parts;
  }

  #put(buffer: Buffer, from: number, to: number): void {
    const bytes = to - from;
    if (bytes >= LARGE_PIECE_BYTES) {
      this.#close();
      this.#parts.push(buffer.subarray(from, to));
      return;
    }
    if (this.#block === null || this.#block.length - this.#used < bytes) this.#open(bytes);
    buffer.copy(this.#block as Buffer, this.#used, from, to);
    this.#used += bytes;
  }

  #open(bytes: number): void {
    this.#close();
    const expected = Math.max(0, this.end - this.#cursor) + bytes + SPARE_BYTES;
    this.#block = Buffer.allocUnsafe(Math.min(BLOCK_BYTES, expected));
    this.#blockStart = this.#used = 0;
  }

  /** What was copied so far is a piece; the rest of the block is for the next one. */
  #close(): void {
    if (this.#block === null || this.#used === this.#blockStart) return;
    this.#parts.push(this.#block.subarray(this.#blockStart, this.#used));
    this.#blockStart = this.#used;
  }
}
