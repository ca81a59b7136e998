import {
  BACKSLASH,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COMMA,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
} from '../../common/json/json-bytes.js';
import { StreamLimitError } from '../../common/sse/stream-limit.js';
import { skipSpace } from './json-check.js';
import { HELD_LIMIT } from './join-budget.js';

// All bytes here are known to be JSON: nothing is checked again.

const MINUS = 0x2d;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
/** A search costs about as much as looking at this many bytes. */
const NEAR_BYTES = 16;
/** Where a search turned out to be short there are more quotes: so many bytes are looked at then. */
const DENSE_BYTES = 1024;

/**
 * The members of an object, as views on its bytes. Of a key that stands twice the last value counts.
 * @throws StreamLimitError where they are more than can be held
 */
export function membersOf(bytes: Buffer): Map<string, Buffer> {
  const members = new Map<string, Buffer>();
  let at = skipSpace(bytes, skipSpace(bytes, 0) + 1);
  while (bytes[at] !== CLOSE_OBJECT) {
    const keyEnd = endOfString(bytes, at);
    const key = textOf(bytes, at, keyEnd);
    // Past the colon.
    const start = skipSpace(bytes, skipSpace(bytes, keyEnd) + 1);
    const end = endOfValue(bytes, start);
    members.set(key, bytes.subarray(start, end));
    if (members.size > HELD_LIMIT)
      throw new StreamLimitError(`an object of the stream has more than ${HELD_LIMIT} members to join`);
    at = skipSpace(bytes, end);
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1);
  }
  return members;
}

/** Each item of a list, as a view on its bytes. */
export function eachItem(bytes: Buffer, visit: (item: Buffer) => void): void {
  let at = skipSpace(bytes, skipSpace(bytes, 0) + 1);
  while (bytes[at] !== CLOSE_ARRAY) {
    const end = endOfValue(bytes, at);
    visit(bytes.subarray(at, end));
    at = skipSpace(bytes, end);
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1);
  }
}

/** Undefined where the value is no number; no other one is decoded, however large it is. */
export function numberOf(raw: Buffer | undefined): number | undefined {
  const first = raw?.[0];
  if (first === undefined || (first !== MINUS && (first < DIGIT_0 || first > DIGIT_9))) return undefined;
  return Number(raw?.toString('latin1'));
}

/** A number that may stand as a text; undefined for all else. */
export function indexOf(raw: Buffer | undefined): number | undefined {
  if (raw?.[0] !== QUOTE) return numberOf(raw);
  const text = raw.toString('latin1', 1, Math.min(raw.length - 1, 17));
  return /^\d{1,15}$/.test(text) && raw.length === text.length + 2 ? Number(text) : undefined;
}

function endOfValue(bytes: Buffer, from: number): number {
  const first = bytes[from];
  if (first === QUOTE) return endOfString(bytes, from);
  let at = from;
  if (first === OPEN_OBJECT || first === OPEN_ARRAY) {
    for (let depth = 0; ;) {
      const byte = bytes[at];
      if (byte === QUOTE) {
        at = endOfString(bytes, at);
        continue;
      }
      at++;
      if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth++;
      else if ((byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) && --depth === 0) return at;
    }
  }
  while (at < bytes.length && !endsScalar(bytes[at] as number)) at++;
  return at;
}

function endsScalar(byte: number): boolean {
  return byte === COMMA || byte === CLOSE_OBJECT || byte === CLOSE_ARRAY || byte <= 0x20;
}

/** Behind the quote that closes the string whose opening one stands at this place. Each byte is seen a fixed number of times. */
function endOfString(bytes: Buffer, from: number): number {
  let at = from + 1;
  let reach = NEAR_BYTES;
  for (;;) {
    const near = Math.min(at + reach, bytes.length);
    while (at < near) {
      const byte = bytes[at++];
      if (byte === QUOTE) return at;
      if (byte === BACKSLASH) at++;
    }
    const quote = bytes.indexOf(QUOTE, at);
    let even = quote;
    while (even > at && bytes[even - 1] === BACKSLASH) even--;
    if ((quote - even) % 2 === 0) return quote + 1;
    reach = quote - at < DENSE_BYTES ? DENSE_BYTES : NEAR_BYTES;
    at = quote + 1;
  }
}

function textOf(bytes: Buffer, start: number, end: number): string {
  let ascii = true;
  for (let at = start + 1; at < end - 1; at++) {
    const byte = bytes[at] as number;
    if (byte === BACKSLASH) return JSON.parse(bytes.toString('utf8', start, end)) as string;
    if (byte > 0x7e) ascii = false;
  }
  return bytes.toString(ascii ? 'latin1' : 'utf8', start + 1, end - 1);
}
