import {
  BACKSLASH,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  isScalar,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
} from '../../common/json/json-bytes.js';

/** Up to here V8's own parser is faster, and what it makes of the bytes is small. */
const PARSED_LIMIT_BYTES = 64 * 1024;
const LETTER_U = 0x75;

const ESCAPED: ReadonlySet<number> = new Set(Buffer.from('"\\/bfnrt'));

/**
 * Whether the bytes are one JSON value, as `JSON.parse` takes it. Trap: that makes objects of 15 MB of `{}` that are thirty times
 * as large, so large values are only read.
 */
export function isJson(bytes: Buffer): boolean {
  if (bytes.length > PARSED_LIMIT_BYTES) return isGrammatical(bytes);
  try {
    JSON.parse(bytes.toString('utf8'));
    return true;
  } catch {
    // V8's message quotes the text, so it goes nowhere.
    return false;
  }
}

/** Without recursion, and without making anything but a list as long as the value is deep. */
export function isGrammatical(bytes: Buffer): boolean {
  const closers: number[] = [];
  let at = skipSpace(bytes, 0);
  for (;;) {
    const byte = bytes[at];
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      // Each closing bracket stands two after its opening one in ASCII.
      const next = skipSpace(bytes, at + 1);
      if (bytes[next] !== byte + 2) {
        closers.push(byte + 2);
        at = byte === OPEN_OBJECT ? valueBehindKey(bytes, next) : next;
        if (at < 0) return false;
        continue;
      }
      at = next + 1;
    } else at = byte === QUOTE ? stringEnd(bytes, at) : scalarEnd(bytes, at);
    if (at < 0) return false;
    for (;;) {
      at = skipSpace(bytes, at);
      const closer = closers.at(-1);
      if (closer === undefined) return at === bytes.length;
      if (bytes[at] !== closer) break;
      closers.pop();
      at++;
    }
    if (bytes[at] !== COMMA) return false;
    at = skipSpace(bytes, at + 1);
    if (closers.at(-1) === CLOSE_OBJECT) at = valueBehindKey(bytes, at);
    if (at < 0) return false;
  }
}

/** The place of the next byte that is no white space. */
export function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  for (let byte = bytes[at]; byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;)
    byte = bytes[++at];
  return at;
}

/** Where the value of the member at this place begins, or -1. */
function valueBehindKey(bytes: Buffer, from: number): number {
  if (bytes[from] !== QUOTE) return -1;
  const end = stringEnd(bytes, from);
  if (end < 0) return -1;
  const colon = skipSpace(bytes, end);
  return bytes[colon] === COLON ? skipSpace(bytes, colon + 1) : -1;
}

/** Behind the closing quote, or -1. */
function stringEnd(bytes: Buffer, from: number): number {
  for (let at = from + 1; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) return at + 1;
    if (byte < 0x20) return -1;
    if (byte !== BACKSLASH) continue;
    const escaped = bytes[++at] as number;
    if (escaped === LETTER_U) {
      for (let i = 0; i < 4; i++) if (!isHex(bytes[++at])) return -1;
    } else if (!ESCAPED.has(escaped)) return -1;
  }
  return -1;
}

function scalarEnd(bytes: Buffer, from: number): number {
  let at = from;
  for (; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte <= 0x20 || byte === COMMA || byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) break;
  }
  return at > from && isScalar(bytes, from, at) ? at : -1;
}

function isHex(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  const letter = byte | 0x20;
  return (byte >= 0x30 && byte <= 0x39) || (letter >= 0x61 && letter <= 0x66);
}
