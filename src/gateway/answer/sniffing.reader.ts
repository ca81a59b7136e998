import { ChunkList } from '../../common/bytes/chunk-list.js';
import type { AttemptFailure } from '../../contracts/exchange.js';
import type { AnswerReader } from './answer-reader.js';

export type AnswerKind = 'json' | 'sse' | 'other';

const BLANK = new Set([0x20, 0x09, 0x0a, 0x0d]);
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf] as const;
/** White space beyond this is no answer. */
const HOLD_LIMIT_BYTES = 64 * 1024;

/** Told by the first byte that is not white space, for an answer without a content type. */
export function kindByFirstByte(byte: number): AnswerKind {
  const character = String.fromCharCode(byte);
  if ('{["-0123456789tfn'.includes(character)) return 'json';
  return ':deir'.includes(character) ? 'sse' : 'other';
}

/** Waits for the byte that tells what an answer is, then hands everything to the reader for it. */
export class SniffingReader implements AnswerReader {
  readonly #held = new ChunkList();
  #reader: AnswerReader | null = null;

  constructor(
    private readonly readerFor: (kind: AnswerKind | 'empty') => AnswerReader,
    private readonly brokenBefore: (failure: AttemptFailure) => void,
  ) {}

  data(chunk: Buffer): boolean {
    if (this.#reader !== null) return this.#reader.data(chunk);
    const kind = this.#kindOf(chunk);
    this.#held.push(chunk);
    if (kind !== null) return this.#begin(kind);
    return this.#held.length > HOLD_LIMIT_BYTES ? this.#begin('other') : true;
  }

  end(): void {
    if (this.#reader === null) this.#begin('empty');
    this.#reader?.end();
  }

  stop(): void {
    this.#reader?.stop?.();
  }

  drained(): boolean {
    return this.#reader?.drained?.() ?? false;
  }

  broken(failure: AttemptFailure): void {
    if (this.#reader === null) this.brokenBefore(failure);
    else this.#reader.broken(failure);
  }

  /** Null while only white space, or a byte order mark, came. */
  #kindOf(chunk: Buffer): AnswerKind | null {
    for (const [i, byte] of chunk.entries()) {
      const place = this.#held.length + i;
      if (BLANK.has(byte) || (place < 3 && byte === BYTE_ORDER_MARK[place])) continue;
      return kindByFirstByte(byte);
    }
    return null;
  }

  #begin(kind: AnswerKind | 'empty'): boolean {
    const reader = this.readerFor(kind);
    this.#reader = reader;
    let more = true;
    for (const chunk of this.#held.take()) more = reader.data(chunk);
    return more;
  }
}
