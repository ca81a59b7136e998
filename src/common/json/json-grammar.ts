import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  isScalar,
  isSpace,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
} from './json-bytes.js';
import { StringEnd } from './string-end.js';

/** No number of a client is as long. */
const LONGEST_WORD_BYTES = 4096;

// What may come next.
const VALUE = 0;
/** Or the end of the array. */
const FIRST_VALUE = 1;
const NAME = 2;
/** Or the end of the object. */
const FIRST_NAME = 3;
const AFTER_NAME = 4;
const AFTER_VALUE = 5;

/**
 * Whether a text is JSON at every depth (RFC 8259), fed in pieces cut anywhere, but for what stands within its quotes: there
 * only the end is looked for. Makes nothing but a list as long as the value is deep. Lives for one text.
 */
export class JsonGrammar {
  readonly #closers: number[] = [];
  readonly #strings = new StringEnd();
  #state = VALUE;
  #inString = false;
  /** The beginning of a number or literal that a cut interrupts. */
  #word = '';

  /** Where the first byte stands that JSON cannot have there, or -1. Nothing more may be fed then. */
  feed(chunk: Buffer, from: number, to: number): number {
    let i = from;
    while (i < to) {
      if (this.#inString) i = this.#string(chunk, i, to);
      else if (this.#word !== '' || !isSpace(chunk[i] as number)) {
        const next = this.#token(chunk, i, to);
        if (next < 0) return i;
        i = next;
      } else i++;
    }
    this.#strings.release();
    return -1;
  }

  /** The place behind it; -1: it must not stand here. */
  #token(chunk: Buffer, at: number, to: number): number {
    if (this.#word !== '') return this.#scalar(chunk, at, to);
    const state = this.#state;
    const byte = chunk[at] as number;
    switch (byte) {
      case COLON:
        this.#state = VALUE;
        return state === AFTER_NAME ? at + 1 : -1;
      case COMMA:
        this.#state = this.#closers.at(-1) === CLOSE_OBJECT ? NAME : VALUE;
        return state === AFTER_VALUE ? at + 1 : -1;
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        this.#state = AFTER_VALUE;
        if (this.#closers.pop() !== byte) return -1;
        return state === AFTER_VALUE || state === (byte === CLOSE_OBJECT ? FIRST_NAME : FIRST_VALUE)
          ? at + 1
          : -1;
      case QUOTE:
        this.#inString = true;
        this.#state = state === NAME || state === FIRST_NAME ? AFTER_NAME : AFTER_VALUE;
        return state === AFTER_NAME || state === AFTER_VALUE ? -1 : at + 1;
    }
    if (state !== VALUE && state !== FIRST_VALUE) return -1;
    if (byte !== OPEN_OBJECT && byte !== OPEN_ARRAY) return this.#scalar(chunk, at, to);
    // Each closing bracket stands two after its opening one in ASCII.
    this.#closers.push(byte + 2);
    this.#state = byte === OPEN_OBJECT ? FIRST_NAME : FIRST_VALUE;
    return at + 1;
  }

  #string(chunk: Buffer, from: number, to: number): number {
    const quote = this.#strings.next(chunk, from, to);
    if (quote < 0) return to;
    this.#inString = false;
    return quote + 1;
  }

  /** Whatever is glued to a word is a part of it: for some readers it is. */
  #scalar(chunk: Buffer, from: number, to: number): number {
    this.#state = AFTER_VALUE;
    let end = from;
    while (end < to && !endsWord(chunk[end] as number)) end++;
    if (this.#word.length + end - from > LONGEST_WORD_BYTES) return -1;
    if (end < to && this.#word === '') return isScalar(chunk, from, end) ? end : -1;
    this.#word += chunk.toString('latin1', from, end);
    if (end === to) return end;
    const word = Buffer.from(this.#word, 'latin1');
    this.#word = '';
    return isScalar(word, 0, word.length) ? end : -1;
  }
}

function endsWord(byte: number): boolean {
  return byte === COMMA || byte === CLOSE_ARRAY || byte === CLOSE_OBJECT || isSpace(byte);
}
