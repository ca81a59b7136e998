import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import { ZstdFrames } from './zstd-frames.js';

const CODINGS = new Set(['gzip', 'x-gzip', 'deflate', 'br', 'zstd']);

/** Whether a body with this one content coding (lower case) can be read. */
export function canDecode(coding: string): boolean {
  return CODINGS.has(coding);
}

export interface Decoder extends Transform {
  /**
   * How many coded bytes it took. Trap: but for gzip and zstd, what stands behind the end of the data is dropped without an error;
   * whoever must not lose it compares this with what arrived.
   */
  readonly bytesWritten: number;
}

/** A decoder for a body with this coding that begins with these bytes. */
export function createDecoder(coding: string, firstChunk: Buffer): Decoder {
  switch (coding) {
    case 'br':
      return createBrotliDecompress();
    case 'zstd':
      return new ZstdFrames();
    case 'deflate':
      // Trap: some send raw deflate under this name; a zlib header has method 8 in its low four bits (RFC 1950 §2.2).
      return ((firstChunk[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw();
    default:
      return createGunzip();
  }
}
