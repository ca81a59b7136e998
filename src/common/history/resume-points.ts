import { createHash, type Hash } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** A history whose chain is known: found again by its very bytes. */
export interface ResumePoint {
  /** Of the bytes from the first message of the chain to the end of the last one. */
  readonly lengthBytes: number;
  readonly sha256: string;
  /** Tells most strangers apart without hashing them. */
  readonly tailCrc: number;
  /** Messages covered, and the chain's digest behind the last of them. */
  readonly count: number;
  readonly digest: string;
}

/** The point that was found, and its hash to go on with. */
export interface Resumption {
  readonly point: ResumePoint;
  readonly hash: Hash;
}

const BUCKET_LIMIT = 1000;
const POINTS_PER_BUCKET = 16;
const HEAD_BYTES = 1024;
const TAIL_BYTES = 64;

/**
 * Remembers where the hashing of histories stopped, so that a grown one is parsed and hashed canonically from there
 * on only. Owns a bounded number of small records, never a message. A record counts only when SHA-256 says that the
 * bytes are the same: the checksums merely choose what to look at.
 */
export class ResumePoints {
  /** By the checksum of the first bytes, last used last; in each the last used point first. */
  readonly #buckets = new Map<number, ResumePoint[]>();

  /** The longest known beginning of this history. */
  find(history: Buffer): Resumption | undefined {
    const key = headCrc(history);
    const bucket = this.#buckets.get(key);
    if (bucket === undefined) return undefined;
    const candidates = bucket
      .filter(
        ({ lengthBytes, tailCrc }) =>
          lengthBytes <= history.length && crcBefore(history, lengthBytes) === tailCrc,
      )
      .sort((one, other) => other.lengthBytes - one.lengthBytes);
    for (const point of candidates) {
      const hash = createHash('sha256').update(history.subarray(0, point.lengthBytes));
      if (hash.copy().digest('binary') !== point.sha256) continue;
      // To the front: of many branches from one point the point must outlive the branches.
      this.#touch(key, [point, ...bucket.filter((other) => other !== point)]);
      return { point, hash };
    }
    return undefined;
  }

  add(history: Buffer, lengthBytes: number, sha256: string, count: number, digest: string): void {
    // Histories shorter than the head are hashed in no time.
    if (lengthBytes < HEAD_BYTES) return;
    const key = headCrc(history);
    const others = (this.#buckets.get(key) ?? []).filter((point) => point.sha256 !== sha256);
    const point = { lengthBytes, sha256, tailCrc: crcBefore(history, lengthBytes), count, digest };
    this.#touch(key, [point, ...others].slice(0, POINTS_PER_BUCKET));
    for (const [oldest] of this.#buckets) {
      if (this.#buckets.size <= BUCKET_LIMIT) break;
      this.#buckets.delete(oldest);
    }
  }

  #touch(key: number, bucket: ResumePoint[]): void {
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
  }
}

const headCrc = (history: Buffer): number => crc32(history.subarray(0, HEAD_BYTES));
const crcBefore = (history: Buffer, end: number): number => crc32(history.subarray(end - TAIL_BYTES, end));
