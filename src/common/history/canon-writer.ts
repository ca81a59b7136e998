import { isSpace } from '../json/json-bytes.js';
import { CanonOutput } from './canon-output.js';

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Deeper values stand for themselves. */
const DEPTH_LIMIT = 6000;
/** A decimal number of so many digits is written as it is read. */
const EXACT_DIGITS = 15;

const NOTHING = Buffer.alloc(0);

const FIRST_ITEM = 0;
const VALUE = 1;
const FIRST_KEY = 2;
const KEY = 3;
const AFTER = 4;
/** The frame of an array; that of an object is where its members begin in the list of all. */
const ARRAY = -1;

/**
 * Writes JSON in one form for all its spellings: no white space, names in order, each once, texts and numbers as
 * `JSON.stringify` writes what `JSON.parse` reads. Goes over the bytes once and makes no values of them: a message may
 * hold twenty million. Owns its buffers, which are used again; what it gives holds until `release`.
 */
export class CanonWriter {
  readonly #out = new CanonOutput();
  readonly #frames: number[] = [];
  readonly #members: number[] = [];
  #raw: Buffer = NOTHING;
  #at = 0;

  /**
   * @param dropped whether a member is left out, told by what was written from `start` on
   * @returns `before` and the value; undefined where it is no JSON, too deep, or too much to put in order
   */
  write(
    raw: Buffer,
    before: string,
    dropped: (out: CanonOutput, start: number, depth: number) => boolean,
  ): Buffer | undefined {
    const out = this.#out;
    this.release();
    out.text(before);
    this.#raw = raw;
    this.#at = 0;
    const whole = this.#walk(dropped);
    this.#raw = NOTHING;
    return whole ? out.bytes.subarray(0, out.length) : undefined;
  }

  /** What was given is not needed any more. */
  release(): void {
    this.#out.reset();
    this.#frames.length = this.#members.length = 0;
  }

  #walk(dropped: (out: CanonOutput, start: number, depth: number) => boolean): boolean {
    const raw = this.#raw;
    const end = raw.length;
    const out = this.#out;
    const frames = this.#frames;
    const members = this.#members;
    let state = VALUE;
    for (;;) {
      while (this.#at < end && isSpace(raw[this.#at] as number)) this.#at++;
      if (this.#at === end) return state === AFTER && frames.length === 0;
      const byte = raw[this.#at++] as number;
      if (state === AFTER) {
        if (frames.length === 0) return false;
        const first = frames[frames.length - 1] as number;
        if (first !== ARRAY) {
          const start = members[members.length - 1] as number;
          if (dropped(out, start, frames.length)) {
            members.pop();
            out.length = start - (members.length > first ? 1 : 0);
          }
        }
        if (byte === COMMA) {
          if (first === ARRAY) out.put(COMMA);
          state = first === ARRAY ? VALUE : KEY;
        } else if (byte !== (first === ARRAY ? CLOSE_ARRAY : CLOSE_OBJECT)) return false;
        else if (!this.#close(byte)) return false;
      } else if (state === FIRST_ITEM && byte === CLOSE_ARRAY) {
        if (!this.#close(byte)) return false;
        state = AFTER;
      } else if (state === FIRST_KEY && byte === CLOSE_OBJECT) {
        if (!this.#close(byte)) return false;
        state = AFTER;
      } else if (state === FIRST_KEY || state === KEY) {
        if (byte !== QUOTE) return false;
        if (members.length > (frames[frames.length - 1] as number)) out.put(COMMA);
        members.push(out.length);
        if (!this.#string()) return false;
        while (isSpace(raw[this.#at] as number)) this.#at++;
        if (raw[this.#at++] !== COLON) return false;
        out.put(COLON);
        state = VALUE;
      } else if (byte === QUOTE) {
        if (!this.#string()) return false;
        state = AFTER;
      } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
        if (frames.length === DEPTH_LIMIT) return false;
        out.put(byte);
        frames.push(byte === OPEN_ARRAY ? ARRAY : members.length);
        state = byte === OPEN_ARRAY ? FIRST_ITEM : FIRST_KEY;
      } else {
        if (!this.#scalar(byte)) return false;
        state = AFTER;
      }
    }
  }

  #close(bracket: number): boolean {
    const first = this.#frames.pop() as number;
    if (first !== ARRAY) {
      if (this.#members.length - first > 1) {
        if (!this.#out.sort(this.#members, first)) return false;
        if (!this.#out.bearable(this.#raw.length)) return false;
      }
      this.#members.length = first;
    }
    this.#out.put(bracket);
    return true;
  }

  #scalar(byte: number): boolean {
    switch (byte) {
      case 0x74:
        return this.#word('true');
      case 0x66:
        return this.#word('false');
      case 0x6e:
        return this.#word('null');
      default:
        return this.#number();
    }
  }

  #word(word: string): boolean {
    const start = this.#at - 1;
    for (let i = 1; i < word.length; i++) if (this.#raw[start + i] !== word.charCodeAt(i)) return false;
    this.#at = start + word.length;
    this.#out.copy(this.#raw, start, this.#at);
    return true;
  }

  #number(): boolean {
    const raw = this.#raw;
    const start = this.#at - 1;
    let i = raw[start] === MINUS ? start + 1 : start;
    const whole = i;
    if (!isDigit(raw[i])) return false;
    if (raw[i] === ZERO) i++;
    else while (isDigit(raw[i])) i++;
    let exact = raw[whole] !== ZERO || whole === start;
    let digits = i - whole;
    if (raw[i] === DOT) {
      const fraction = ++i;
      while (isDigit(raw[i])) i++;
      if (i === fraction) return false;
      digits += i - fraction;
      // No zero at the end, and none in front that would make it a power of ten.
      exact = raw[i - 1] !== ZERO && (raw[whole] !== ZERO || raw[fraction] !== ZERO);
    }
    if (raw[i] === 0x65 || raw[i] === 0x45) {
      exact = false;
      i++;
      if (raw[i] === 0x2b || raw[i] === MINUS) i++;
      if (!isDigit(raw[i])) return false;
      while (isDigit(raw[i])) i++;
    }
    this.#at = i;
    if (exact && digits <= EXACT_DIGITS) this.#out.copy(raw, start, i);
    else {
      const value = Number(raw.toString('latin1', start, i));
      this.#out.text(Number.isFinite(value) ? String(value) : 'null');
    }
    return true;
  }

  /** Behind its opening quote. */
  #string(): boolean {
    const raw = this.#raw;
    const out = this.#out;
    let i = this.#at;
    let run = i - 1;
    for (;;) {
      const byte = raw[i];
      if (byte === QUOTE) break;
      if (byte === undefined || byte < 0x20) return false;
      if (byte !== BACKSLASH) {
        i++;
        continue;
      }
      switch (raw[i + 1]) {
        // As JSON.stringify writes them.
        case QUOTE:
        case BACKSLASH:
        case 0x62:
        case 0x66:
        case 0x6e:
        case 0x72:
        case 0x74:
          i += 2;
          break;
        case 0x2f:
          out.copy(raw, run, i);
          run = i + 1;
          i += 2;
          break;
        case 0x75: {
          const unit = unitOf(raw, i + 2);
          if (unit < 0) return false;
          out.copy(raw, run, i);
          i += 6;
          const low =
            unit >= 0xd800 && unit <= 0xdbff && raw[i] === BACKSLASH && raw[i + 1] === 0x75
              ? unitOf(raw, i + 2)
              : -1;
          if (low >= 0xdc00 && low <= 0xdfff) {
            out.character(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
            i += 6;
          } else out.character(unit);
          run = i;
          break;
        }
        default:
          return false;
      }
    }
    this.#at = i + 1;
    out.copy(raw, run, i + 1);
    return true;
  }
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE;
}

/** Four hexadecimal digits, or -1. */
function unitOf(raw: Buffer, from: number): number {
  let unit = 0;
  for (let i = from; i < from + 4; i++) {
    const byte = raw[i] ?? 0;
    const letter = byte | 0x20;
    if (isDigit(byte)) unit = unit * 16 + byte - ZERO;
    else if (letter >= 0x61 && letter <= 0x66) unit = unit * 16 + letter - 0x57;
    else return -1;
  }
  return unit;
}
