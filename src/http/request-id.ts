import { randomFillSync } from 'node:crypto';

const LONGEST = 128;

const RANDOM_BYTES = 16;
const pool = Buffer.alloc(RANDOM_BYTES * 128);
let used = pool.length;
const DASH = 0x2d;
const DIGITS = Buffer.from('0123456789abcdef');
const text = Buffer.alloc(36, DASH);
/** Where in the text the digits of each byte stand (RFC 9562: 8-4-4-4-12). */
const PLACES = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/** The client's id where it matches `[A-Za-z0-9._:-]{1,128}`, else a new one. */
export function requestIdOf(header: string | string[] | undefined): string {
  return typeof header === 'string' && isSane(header) ? header : randomId();
}

/**
 * A random UUID (version 4). Trap: Node's own is a text of twenty joined pieces until somebody reads it, a kilobyte and a
 * half that stays with each open stream.
 */
function randomId(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  for (let i = 0; i < RANDOM_BYTES; i++) {
    let byte = pool[used++] as number;
    if (i === 6) byte = (byte & 0x0f) | 0x40;
    else if (i === 8) byte = (byte & 0x3f) | 0x80;
    const place = PLACES[i] as number;
    text[place] = DIGITS[byte >> 4] as number;
    text[place + 1] = DIGITS[byte & 0x0f] as number;
  }
  return text.toString('latin1');
}

function isSane(id: string): boolean {
  return id.length > 0 && id.length <= LONGEST && /^[A-Za-z0-9._:-]+$/.test(id);
}
