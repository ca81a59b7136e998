import { isUtf8 } from 'node:buffer';
import { CLOSE_ARRAY, CLOSE_OBJECT, COLON, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from './json-bytes.js';
import { StringEnd } from './string-end.js';

const LETTER_N = 0x6e;
const SPACE = 0x20;

/** Of a longer text only this much is told. */
const TEXT_LIMIT_BYTES = 4096;
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f]/g;
const NOT_ASCII = /[^\0-\x7f]/;
/** What is deeper is passed over; a request cannot be. */
const DEPTH_LIMIT = 20_000;

/** A text (one character a byte), null, or undefined for a number or a boolean. */
export type WalkValue = string | null | undefined;

/** Told what a walk meets; `inside` is what `open` made of the object or array around it. */
export interface WalkVisitor<C> {
  /** `key`: the member's name; of an item of an array that of the array, '' at the top. */
  open(kind: 'object' | 'array', key: string, inside: C): C;
  value(key: string, value: WalkValue, inside: C): void;
  close(inside: C): void;
  /**
   * A reader may read another text: it has an escape that JSON does not know; or another name: it has a NUL, which ends it
   * for some, or what is no UTF-8 or half a surrogate pair, which some drop.
   */
  doubt?(inside: C): void;
}

interface Frame<C> {
  readonly object: boolean;
  /** Of an object the member that is read, of an array its own. */
  key: string;
  readonly inside: C;
}

/**
 * Visits every value of a JSON text, at any depth, as its bytes come in. Unlike a parser it sees each member of a name that
 * stands twice, of which another reader may take another one. What is no JSON is passed over. Lives for one text; keeps
 * one string of it at most, and never recurses.
 */
export class JsonWalk<C> {
  readonly #frames: Frame<C>[] = [];
  readonly #strings = new StringEnd();
  #inString = false;
  /** In an object: the next string is a name. */
  #expectsName = false;
  #inScalar = false;
  #text = '';
  #over = false;

  constructor(
    private readonly visitor: WalkVisitor<C>,
    private readonly outside: C,
  ) {}

  /** The next bytes, cut anywhere. */
  feed(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length && !this.#over) {
      if (this.#inString) {
        at = this.#string(chunk, at);
        continue;
      }
      this.#token(chunk[at] as number);
      at++;
    }
    this.#strings.release();
  }

  #token(byte: number): void {
    if (byte <= SPACE) {
      this.#inScalar = false;
      return;
    }
    const inScalar = this.#inScalar;
    this.#inScalar = false;
    switch (byte) {
      case QUOTE:
        this.#inString = true;
        this.#text = '';
        return;
      case COMMA:
        this.#expectsName = this.#frames.at(-1)?.object === true;
        return;
      case COLON:
        this.#expectsName = false;
        return;
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        return this.#open(byte === OPEN_OBJECT);
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        return this.#close();
      default:
        this.#inScalar = true;
        if (!inScalar) this.#tell(byte === LETTER_N ? null : undefined);
    }
  }

  #open(object: boolean): void {
    if (this.#frames.length >= DEPTH_LIMIT) {
      this.#over = true;
      return;
    }
    const around = this.#frames.at(-1);
    const key = around?.key ?? '';
    const inside = this.visitor.open(object ? 'object' : 'array', key, around?.inside ?? this.outside);
    this.#frames.push({ object, key: object ? '' : key, inside });
    this.#expectsName = object;
  }

  #close(): void {
    const frame = this.#frames.pop();
    this.#expectsName = false;
    if (frame !== undefined) this.visitor.close(frame.inside);
  }

  /** @returns where to go on */
  #string(chunk: Buffer, from: number): number {
    const quote = this.#strings.next(chunk, from, chunk.length);
    const end = quote < 0 ? chunk.length : quote;
    const room = TEXT_LIMIT_BYTES - this.#text.length;
    if (room > 0) this.#text += chunk.toString('latin1', from, Math.min(end, from + room));
    if (quote < 0) return end;
    this.#inString = false;
    const text = decoded(this.#text);
    // A text that was cut may end inside of an escape.
    if (text === null && this.#text.length < TEXT_LIMIT_BYTES) this.#doubt();
    this.#end(this.#text, text);
    return quote + 1;
  }

  /** @param text null where nobody knows what its escapes make of it */
  #end(raw: string, text: string | null): void {
    const frame = this.#frames.at(-1);
    if (frame?.object === true && this.#expectsName) {
      if (isDoubtful(raw, text)) this.#doubt();
      frame.key = text ?? raw;
    } else this.#tell(text ?? raw);
  }

  #tell(value: WalkValue): void {
    const frame = this.#frames.at(-1);
    if (frame !== undefined) this.visitor.value(frame.key, value, frame.inside);
  }

  #doubt(): void {
    const frame = this.#frames.at(-1);
    if (frame !== undefined) this.visitor.doubt?.(frame.inside);
  }
}

/** `raw` has one character for each byte; `text` is what its escapes make of it. */
function isDoubtful(raw: string, text: string | null): boolean {
  // Nobody knows the rest of one that was cut.
  if (raw.length >= TEXT_LIMIT_BYTES) return true;
  if (text === null) return false;
  return (
    text.includes('\0') ||
    !text.isWellFormed() ||
    (NOT_ASCII.test(raw) && !isUtf8(Buffer.from(raw, 'latin1')))
  );
}

/** Null where it has an escape that JSON does not know. A bare control character is what everybody takes it for. */
function decoded(raw: string): string | null {
  if (!raw.includes('\\')) return raw;
  try {
    return JSON.parse(`"${raw.replace(CONTROL, ' ')}"`) as string;
  } catch {
    return null;
  }
}
