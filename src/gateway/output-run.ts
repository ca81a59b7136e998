/** Up to this size several pieces are joined, so that they leave in one write. */
const JOIN_LIMIT_BYTES = 64 * 1024;

/**
 * Gathers the pieces that leave together. Owns nothing but views; emptied by each `take`. Events that lay side by side
 * in the upstream's chunk are one piece again, without a copy.
 */
export class OutputRun {
  #pieces: Buffer[] = [];
  #bytes = 0;

  add(piece: Buffer): void {
    if (piece.length === 0) return;
    const last = this.#pieces.at(-1);
    this.#bytes += piece.length;
    if (
      last !== undefined &&
      last.buffer === piece.buffer &&
      last.byteOffset + last.length === piece.byteOffset
    ) {
      this.#pieces[this.#pieces.length - 1] = Buffer.from(
        last.buffer,
        last.byteOffset,
        last.length + piece.length,
      );
    } else this.#pieces.push(piece);
  }

  take(): Buffer | readonly Buffer[] | null {
    const pieces = this.#pieces;
    const bytes = this.#bytes;
    if (bytes === 0) return null;
    this.#pieces = [];
    this.#bytes = 0;
    if (pieces.length === 1) return pieces[0]!;
    return bytes <= JOIN_LIMIT_BYTES ? Buffer.concat(pieces, bytes) : pieces;
  }
}
