/** Up to this size several pieces are joined, so that they leave in one write. */
const JOIN_LIMIT_BYTES = 64 * 1024;

/**
 * Gathers the pieces that leave together. Owns nothing but views; emptied by each `take`. Events that lay side by side
 * in the upstream's chunk are one piece again, without a copy.
 */
export class OutputRun {
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** The piece that may still grow: its first view, and the length it has by now. */
  #open: Buffer | null = null;
  #openBytes = 0;

  add(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#bytes += piece.length;
    const open = this.#open;
    if (open?.buffer === piece.buffer && open.byteOffset + this.#openBytes === piece.byteOffset) {
      this.#openBytes += piece.length;
      return;
    }
    this.#close();
    this.#open = piece;
    this.#openBytes = piece.length;
  }

  take(): Buffer | readonly Buffer[] | null {
    this.#close();
    const pieces = this.#pieces;
    const bytes = this.#bytes;
    if (bytes === 0) return null;
    this.#pieces = [];
    this.#bytes = 0;
    if (pieces.length === 1) return pieces[0]!;
    return bytes <= JOIN_LIMIT_BYTES ? Buffer.concat(pieces, bytes) : pieces;
  }

  #close(): void {
    const open = this.#open;
    if (open === null) return;
    const grown = this.#openBytes > open.length;
    this.#pieces.push(grown ? Buffer.from(open.buffer, open.byteOffset, this.#openBytes) : open);
    this.#open = null;
  }
}
