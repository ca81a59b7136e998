import type { AttemptFailure } from '../../contracts/exchange.js';
import type { AnswerReader } from './answer-reader.js';

export type AnswerKind = 'json' | 'sse' | 'other';

const BLANK = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** Told by the first byte that is not white space, for an answer without a content type (spec 01 §5). */
export function kindByFirstByte(byte: number): AnswerKind {
  const character = String.fromCharCode(byte);
  if ('{["-0123456789tfn'.includes(character)) return 'json';
  return ':deir'.includes(character) ? 'sse' : 'other';
}

/** Waits for the byte that tells what an answer is, then hands everything to the reader for it. */
export class SniffingReader implements AnswerReader {
  #held: Buffer[] = [];
  #reader: AnswerReader | null = null;

  constructor(
    private readonly readerFor: (kind: AnswerKind | 'empty') => AnswerReader,
    private readonly brokenBefore: (failure: AttemptFailure) => void,
  ) {}

  data(chunk: Buffer): boolean {
    if (this.#reader !== null) return this.#reader.data(chunk);
    const kind = kindOf(chunk, this.#held.length === 0);
    this.#held.push(chunk);
    return kind === null ? true : this.#begin(kind);
  }

  end(): void {
    if (this.#reader === null) this.#begin('empty');
    this.#reader?.end();
  }

  broken(failure: AttemptFailure): void {
    if (this.#reader === null) this.brokenBefore(failure);
    else this.#reader.broken(failure);
  }

  #begin(kind: AnswerKind | 'empty'): boolean {
    const reader = this.readerFor(kind);
    this.#reader = reader;
    let more = true;
    for (const chunk of this.#held) more = reader.data(chunk);
    this.#held = [];
    return more;
  }
}

function kindOf(chunk: Buffer, atStart: boolean): AnswerKind | null {
  let i = atStart && chunk[0] === 0xef && chunk[1] === 0xbb && chunk[2] === 0xbf ? 3 : 0;
  while (i < chunk.length && BLANK.has(chunk[i] as number)) i++;
  return i < chunk.length ? kindByFirstByte(chunk[i] as number) : null;
}
