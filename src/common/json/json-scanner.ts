import type { ByteSource } from './byte-source.js';
import { isScalar, isSpace } from './json-bytes.js';
import { JsonLimitError, JsonSyntaxError } from './json-syntax-error.js';
import { QuoteSearch } from './quote-search.js';

// Not imported: a constant of another module is a load in the hot loops, one of this module is none (a fifth of the time).
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;

// What a byte means between the strings of a nested value.
const PLAIN = 0;
const STRING = 1;
const OPEN = 2;
const CLOSE = 3;
/** A bit of its own: often followed by a string at once. */
const SEPARATOR = 4;
const STRUCTURE = new Uint8Array(256);
STRUCTURE[QUOTE] = STRING;
STRUCTURE[OPEN_OBJECT] = STRUCTURE[OPEN_ARRAY] = OPEN;
STRUCTURE[CLOSE_OBJECT] = STRUCTURE[CLOSE_ARRAY] = CLOSE;
STRUCTURE[COMMA] = STRUCTURE[COLON] = SEPARATOR;

/** Nesting below the top level. */
const DEPTH_LIMIT = 10_000;
/** Four numbers are kept for each member: a body of nothing but `"":0,` must not become ten times its size. */
const ITEM_LIMIT = 1_000_000;
/** A search costs about as much as looking at this many bytes here. */
const NEAR_BYTES = 16;
/**
 * Tables of scans that are over, to write into again: one that grows by itself is made three times before it holds the
 * members of an ordinary body, and thrown away as often. Only small ones are kept.
 */
const spareTables: number[][] = [];
const SPARES = 64;
const SPARE_LENGTH = 256;
const BOM = [0xef, 0xbb, 0xbf];

// Between tokens, where white space may stand.
const START = 0;
const FIRST = 1;
const KEY = 2;
const AFTER_KEY = 3;
const VALUE = 4;
const AFTER_VALUE = 5;
const END = 6;
// Inside a token, which a cut between chunks may interrupt.
const IN_KEY = 7;
const IN_STRING = 8;
const IN_SCALAR = 9;
const IN_NESTED = 10;
const FAILED = 11;

/**
 * Finds where the items of one object or array begin and end, fed with its bytes in pieces cut anywhere. Checks the
 * grammar of that one level, and below it only balanced brackets and closed strings. Lives for one scan, keeps
 * offsets only, never bytes. No recursion: the depth of hostile input costs an entry of a list, not stack.
 */
export class JsonScanner {
  /** Keys written with escapes, decoded, by member; null where there is none. */
  escapedKeys: Map<number, string> | null = null;
  /** Offset of the opening bracket. */
  open = -1;

  readonly #source: ByteSource;
  readonly #opener: number;
  /** Closing brackets, made with the first nested value. */
  #stack: number[] | null = null;
  #table: number[] = spareTables.pop() ?? [];
  #count = 0;
  readonly #search = new QuoteSearch();
  #state = START;
  #depth = 0;
  #inString = false;
  #escaped = false;
  #escapedKey = false;
  #bomBytes = 0;

  /** @param source holds at least what has been fed, for tokens that span pieces */
  constructor(source: ByteSource, opener: typeof OPEN_OBJECT | typeof OPEN_ARRAY) {
    this.#source = source;
    this.#opener = opener;
  }

  /** @param base offset of the chunk's first byte, so that `chunk[i]` stands at `base + i` */
  feed(chunk: Buffer, from: number, to: number, base: number): void {
    let i = from;
    while (i < to) {
      switch (this.#state) {
        case IN_KEY:
          i = this.#scanKey(chunk, i, to, base);
          break;
        case IN_STRING:
          i = this.#scanString(chunk, i, to);
          if (!this.#inString) this.#endValue(base + i);
          break;
        case IN_SCALAR:
          i = this.#scanScalar(chunk, i, to, base);
          break;
        case IN_NESTED:
          i = this.#scanNested(chunk, i, to, base);
          if (this.#depth === 0) this.#endValue(base + i);
          break;
        default: {
          const byte = chunk[i] as number;
          if (!isSpace(byte) || (this.#bomBytes % 3 !== 0 && this.#state === START))
            this.#token(byte, base + i);
          // The first byte of a scalar is looked at again with the rest of it.
          i++;
        }
      }
    }
    this.#search.release();
  }

  /** The end of the input, `length` bytes in all. */
  finish(length: number): void {
    if (this.#state !== END) this.#fail(length === 0 ? 'empty' : 'unexpected end', length);
  }

  /** How many offsets were found so far. */
  get count(): number {
    return this.#count;
  }

  /**
   * The offsets, in order. Of an object: key start, key end, value start, value end of each member (quotes included); of an
   * array: value start, value end.
   */
  at(i: number): number {
    return this.#table[i] as number;
  }

  /** All of them, for good: the scanner is of no more use. */
  take(): readonly number[] {
    const table = this.#table;
    const count = this.#count;
    this.#table = [];
    this.#count = 0;
    // Grown beyond what is kept, so nothing of an earlier scan stands behind what was found.
    if (table.length > SPARE_LENGTH) return table;
    if (spareTables.length < SPARES) spareTables.push(table);
    return table.slice(0, count);
  }

  #token(byte: number, offset: number): void {
    switch (this.#state) {
      case START:
        return this.#start(byte, offset);
      case FIRST:
        if (byte === this.#opener + 2) this.#state = END;
        else if (this.#opener === OPEN_OBJECT) this.#startKey(byte, offset);
        else this.#startValue(byte, offset);
        return;
      case KEY:
        return this.#startKey(byte, offset);
      case AFTER_KEY:
        if (byte !== COLON) this.#fail('colon expected', offset);
        this.#state = VALUE;
        return;
      case VALUE:
        return this.#startValue(byte, offset);
      case AFTER_VALUE:
        if (byte === COMMA) this.#state = this.#opener === OPEN_OBJECT ? KEY : VALUE;
        else if (byte === this.#opener + 2) this.#state = END;
        else this.#fail('comma or closing bracket expected', offset);
        return;
      case END:
        return this.#fail('unexpected data after the end', offset);
      default:
        return this.#fail('already failed', offset);
    }
  }

  #start(byte: number, offset: number): void {
    const bom = this.#bomBytes;
    if (offset === bom && byte === BOM[bom]) {
      this.#bomBytes++;
    } else if (byte === this.#opener && bom % 3 === 0) {
      this.open = offset;
      this.#state = FIRST;
    } else {
      this.#fail(this.#opener === OPEN_OBJECT ? 'object expected' : 'array expected', offset);
    }
  }

  #startKey(byte: number, offset: number): void {
    if (byte !== QUOTE) this.#fail('key expected', offset);
    if (this.#count >= ITEM_LIMIT * 4) this.#fail('too many members', offset);
    this.#note(offset);
    this.#escapedKey = false;
    this.#state = IN_KEY;
  }

  #startValue(byte: number, offset: number): void {
    if (byte === QUOTE) {
      this.#inString = true;
      this.#state = IN_STRING;
    } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      // Each closing bracket stands two after its opening one in ASCII.
      if (this.#stack === null) this.#stack = [byte + 2, 0, 0, 0];
      else this.#stack[0] = byte + 2;
      this.#depth = 1;
      this.#state = IN_NESTED;
    } else if (
      byte === 0x2d ||
      (byte >= 0x30 && byte <= 0x39) ||
      byte === 0x74 ||
      byte === 0x66 ||
      byte === 0x6e
    ) {
      this.#state = IN_SCALAR;
    } else {
      this.#fail('value expected', offset);
    }
    if (this.#opener === OPEN_ARRAY && this.#count >= ITEM_LIMIT * 2)
      this.#failLimit('too many items', offset);
    this.#note(offset);
  }

  #endValue(offset: number): void {
    this.#note(offset);
    this.#state = AFTER_VALUE;
  }

  #note(offset: number): void {
    this.#table[this.#count++] = offset;
  }

  #scanKey(chunk: Buffer, from: number, to: number, base: number): number {
    let i = from;
    for (; i < to; i++) {
      const byte = chunk[i] as number;
      if (byte < 0x20) this.#fail('control character in a key', base + i);
      if (this.#escaped) this.#escaped = false;
      else if (byte === BACKSLASH) this.#escaped = this.#escapedKey = true;
      else if (byte === QUOTE) {
        const last = this.#count - 1;
        if (this.#escapedKey) this.#decodeKey(last >>> 2, this.#table[last] as number, base + i + 1);
        this.#note(base + i + 1);
        this.#state = AFTER_KEY;
        return i + 1;
      }
    }
    return i;
  }

  #decodeKey(member: number, start: number, end: number): void {
    try {
      const key = JSON.parse(this.#source.text(start, end, 'utf8')) as string;
      (this.escapedKeys ??= new Map()).set(member, key);
    } catch {
      this.#fail('bad escape in a key', start);
    }
  }

  #scanScalar(chunk: Buffer, from: number, to: number, base: number): number {
    let i = from;
    for (; i < to; i++) {
      const byte = chunk[i] as number;
      if (byte === COMMA || byte === CLOSE_OBJECT || byte === CLOSE_ARRAY || isSpace(byte)) {
        const start = this.#table[this.#count - 1] as number;
        const valid =
          start >= base
            ? isScalar(chunk, start - base, i)
            : isScalar(this.#source.slice(start, base + i), 0, base + i - start);
        if (!valid) this.#fail('bad number or literal', start);
        this.#endValue(base + i);
        return i;
      }
    }
    return i;
  }

  /** Up to the closing bracket of the value (then the depth is 0), or to the end of the piece. */
  #scanNested(chunk: Buffer, from: number, to: number, base: number): number {
    const stack = this.#stack as number[];
    let depth = this.#depth;
    let i = this.#inString ? this.#scanString(chunk, from, to) : from;
    while (i < to) {
      const byte = chunk[i++] as number;
      const kind = STRUCTURE[byte];
      if (kind === SEPARATOR) continue;
      if (kind === PLAIN) {
        i = skipPlain(chunk, i, to);
        continue;
      }
      if (kind === STRING) {
        this.#inString = true;
        if (i < to) i = this.#scanString(chunk, i, to);
      } else if (kind === OPEN) {
        if (depth === DEPTH_LIMIT) this.#failLimit('nested too deeply', base + i - 1);
        stack[depth++] = byte + 2;
      } else {
        if (stack[--depth] !== byte) this.#fail('brackets do not match', base + i - 1);
        if (depth === 0) break;
      }
    }
    this.#depth = depth;
    return i;
  }

  /**
   * The place after the closing quote, or the end of the piece with the string still open. Each byte is seen a fixed
   * number of times (backslashes are counted back from a quote to the last place looked at), so nothing is quadratic.
   */
  #scanString(chunk: Buffer, from: number, to: number): number {
    let i = from;
    if (this.#escaped) {
      this.#escaped = false;
      i++;
    }
    for (;;) {
      const near = Math.min(i + NEAR_BYTES, to);
      while (i < near) {
        const byte = chunk[i++];
        if (byte === QUOTE) {
          this.#inString = false;
          return i;
        }
        if (byte === BACKSLASH) i++;
      }
      if (i >= to) {
        this.#escaped = i > to;
        return to;
      }
      const quote = this.#search.next(chunk, i, to);
      let even = quote;
      while (even > i && chunk[even - 1] === BACKSLASH) even--;
      const escaped = (quote - even) % 2 === 1;
      if (quote === to) {
        this.#escaped = escaped;
        return to;
      }
      i = quote + 1;
      if (!escaped) {
        this.#inString = false;
        return i;
      }
    }
  }

  #failLimit(reason: string, offset: number): never {
    this.#state = FAILED;
    throw new JsonLimitError(reason, offset);
  }

  #fail(reason: string, offset: number): never {
    this.#state = FAILED;
    throw new JsonSyntaxError(reason, offset);
  }
}

/** Past bytes without structure, four at a time: numbers, indentation. May stop early. */
function skipPlain(chunk: Buffer, from: number, to: number): number {
  const last = to - 4;
  let i = from;
  while (i <= last) {
    const a = STRUCTURE[chunk[i] as number] as number;
    const b = STRUCTURE[chunk[i + 1] as number] as number;
    const c = STRUCTURE[chunk[i + 2] as number] as number;
    const d = STRUCTURE[chunk[i + 3] as number] as number;
    if (((a | b | c | d) & ~SEPARATOR) !== PLAIN) return i;
    i += 4;
  }
  return i;
}
