const FIRST_BYTES = 64;
const BLOCK_BYTES = 1024 * 1024;

/**
 * Bytes that come in pieces, copied together. Owns them. Trap: a list of pieces costs a hundred bytes for each, and one buffer
 * that is joined anew for each is quadratic; blocks that grow with what is there are neither.
 */
export class ByteBlocks {
  readonly #full: Buffer[] = [];
  #block: Buffer | null = null;
  #used = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  add(bytes: Buffer, start = 0, end = bytes.length): void {
    let from = start;
    while (from < end) {
      if (this.#block === null || this.#used === this.#block.length) this.#grow(end - from);
      const copied = bytes.copy(this.#block as unknown as Buffer, this.#used, from, end);
      this.#used += copied;
      from += copied;
    }
    this.#length += end - start;
  }

  into(parts: Buffer[]): void {
    for (const block of this.#full) parts.push(block);
    if (this.#block !== null) parts.push(this.#block.subarray(0, this.#used));
  }

  #grow(bytes: number): void {
    if (this.#block !== null) this.#full.push(this.#block);
    const asLarge = Math.min(Math.max(this.#length, FIRST_BYTES), BLOCK_BYTES);
    // Not of the pool: a few bytes would keep a whole one of those.
    this.#block = Buffer.allocUnsafeSlow(Math.max(asLarge, bytes));
    this.#used = 0;
  }
}
