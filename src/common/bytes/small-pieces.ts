/** From here on a chunk stays the buffer that it came in. */
const LARGE_BYTES = 1024;
const FIRST_BLOCK_BYTES = 512;
const BLOCK_BYTES = 16 * 1024;
const POOLED_BYTES = 4 * 1024;

/**
 * Joins small chunks that come one after the other. Trap: a buffer costs over a hundred bytes beside its own and keeps all the
 * memory that it is a view of, so what comes a byte at a time would cost hundreds of times its size. Each byte is copied twice
 * at most, on average. Lives with the list whose last piece it grows.
 */
export class SmallPieces {
  #block: Buffer | null = null;
  #used = 0;

  /**
   * `last` and `next` in one piece, which takes the place of `last`; null where `next` is to be a piece of its own. `last` is
   * what the list ends with: a chunk, or what this gave for it.
   */
  join(last: Buffer, next: Buffer): Buffer | null {
    if (next.length >= LARGE_BYTES) return null;
    const grows = this.#block !== null && this.#used === last.length && isStartOf(last, this.#block);
    if (!grows && last.length >= LARGE_BYTES) return null;
    const length = last.length + next.length;
    if (!grows || length > (this.#block as Buffer).length) {
      if (length > BLOCK_BYTES) return null;
      this.#open(last, length);
    }
    const block = this.#block as Buffer;
    next.copy(block, last.length);
    this.#used = length;
    return block.subarray(0, length);
  }

  /** What was given out keeps the block that it stands in. */
  #open(last: Buffer, length: number): void {
    const bytes = Math.min(BLOCK_BYTES, Math.max(FIRST_BLOCK_BYTES, 2 * length));
    // Only a small one may stand in the pool, of which a piece keeps all.
    const block = bytes < POOLED_BYTES ? Buffer.allocUnsafe(bytes) : Buffer.allocUnsafeSlow(bytes);
    last.copy(block);
    this.#block = block;
  }
}

function isStartOf(piece: Buffer, block: Buffer): boolean {
  return piece.buffer === block.buffer && piece.byteOffset === block.byteOffset;
}
