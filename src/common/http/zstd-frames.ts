import { Transform, type TransformCallback } from 'node:stream';
import { createZstdDecompress, type ZstdDecompress } from 'node:zlib';

/** Each frame has a decoder of its own; nobody needs so many. */
const FRAME_LIMIT = 1024;

/**
 * Decodes zstd frames in a row, as they are made by appending to a coded file (RFC 8878 §3). Trap: Node's decoder stops at
 * the end of the first frame and drops what follows in the same piece; so the rest goes to a new one. Lives for one body.
 */
export class ZstdFrames extends Transform {
  /** Coded bytes that were taken. */
  bytesWritten = 0;
  #frame: ZstdDecompress | null = null;
  #frames = 0;

  override _transform(chunk: Buffer, _encoding: BufferEncoding, callback: TransformCallback): void {
    const frame = (this.#frame ??= this.#open());
    const before = frame.bytesWritten;
    frame.write(chunk, () => {
      const taken = frame.bytesWritten - before;
      this.bytesWritten += taken;
      if (taken === chunk.length) {
        callback();
        return;
      }
      const rest = chunk.subarray(taken);
      // What it has decoded comes before what the next one will.
      const next = (): void => {
        this.#frame = null;
        if (++this.#frames < FRAME_LIMIT) this._transform(rest, _encoding, callback);
        else callback(new Error('too many zstd frames'));
      };
      if (frame.readableEnded) next();
      else frame.once('end', next);
    });
  }

  override _flush(callback: TransformCallback): void {
    const frame = this.#frame;
    if (frame === null || frame.readableEnded) {
      callback();
      return;
    }
    frame.once('end', () => callback());
    frame.end();
  }

  override _read(size: number): void {
    this.#frame?.resume();
    super._read(size);
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#frame?.destroy();
    super._destroy(error, callback);
  }

  #open(): ZstdDecompress {
    const frame = createZstdDecompress();
    frame.on('data', (piece: Buffer) => {
      if (!this.push(piece)) frame.pause();
    });
    frame.on('error', (error) => this.destroy(error));
    return frame;
  }
}
