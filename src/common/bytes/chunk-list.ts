import { ownBytes } from './own-bytes.js';
import { SmallPieces } from './small-pieces.js';

/** Chunks of one body as they came, but small ones joined: it holds little more than their bytes. Owned by who reads the body. */
export class ChunkList {
  #chunks: Buffer[] = [];
  #pieces: SmallPieces | null = null;
  #length = 0;

  /** In bytes. */
  get length(): number {
    return this.#length;
  }

  /** Never change it. */
  get chunks(): readonly Buffer[] {
    return this.#chunks;
  }

  push(chunk: Buffer): void {
    const chunks = this.#chunks;
    this.#length += chunk.length;
    const last = chunks.length - 1;
    if (last >= 0) {
      const joined = (this.#pieces ??= new SmallPieces()).join(chunks[last] as Buffer, chunk);
      if (joined !== null) {
        chunks[last] = joined;
        return;
      }
    }
    chunks.push(ownBytes(chunk));
  }

  /** All in one buffer: the very chunk where there is one. */
  concat(): Buffer {
    const chunks = this.#chunks;
    return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, this.#length);
  }

  /** The chunks, which are the caller's from now on; the list is empty. */
  take(): Buffer[] {
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#pieces = null;
    this.#length = 0;
    return chunks;
  }
}
