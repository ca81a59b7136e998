/** Bytes and byte classes of the JSON grammar (RFC 8259). */
export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_OBJECT = 0x7b;
export const OPEN_ARRAY = 0x5b;
export const CLOSE_ARRAY = 0x5d;
export const CLOSE_OBJECT = 0x7d;

export const isSpace = (byte: number): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= 0x30 && byte <= 0x39;

/** True where the bytes are exactly one number, `true`, `false` or `null`. */
export function isScalar(buffer: Buffer, start: number, end: number): boolean {
  switch (buffer[start]) {
    case 0x74:
      return isWord(buffer, start, end, 'true');
    case 0x66:
      return isWord(buffer, start, end, 'false');
    case 0x6e:
      return isWord(buffer, start, end, 'null');
    default:
      return isNumber(buffer, start, end);
  }
}

function isWord(buffer: Buffer, start: number, end: number, word: string): boolean {
  if (end - start !== word.length) return false;
  for (let i = 0; i < word.length; i++) if (buffer[start + i] !== word.charCodeAt(i)) return false;
  return true;
}

function isNumber(buffer: Buffer, start: number, end: number): boolean {
  let i = buffer[start] === 0x2d ? start + 1 : start;
  if (buffer[i] === 0x30) i++;
  else if ((i = digits(buffer, i, end)) === -1) return false;
  if (i < end && buffer[i] === 0x2e && (i = digits(buffer, i + 1, end)) === -1) return false;
  if (i < end && (buffer[i] === 0x65 || buffer[i] === 0x45)) {
    i++;
    if (i < end && (buffer[i] === 0x2b || buffer[i] === 0x2d)) i++;
    if ((i = digits(buffer, i, end)) === -1) return false;
  }
  return i === end;
}

/** The place after one or more digits, or -1. */
function digits(buffer: Buffer, start: number, end: number): number {
  let i = start;
  while (i < end && isDigit(buffer[i])) i++;
  return i === start ? -1 : i;
}
