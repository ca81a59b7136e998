const LF = 10;
const CR = 13;
const COLON = 58;
const SPACE = 32;
const FIELD = Buffer.from('data');

/** Where one `data:` line of an event stands in its bytes. */
export interface DataLine {
  readonly lineStart: number;
  /** The value, without the one space that may follow the colon. */
  readonly start: number;
  readonly end: number;
  /** Behind the line's end. */
  readonly next: number;
}

export function hasByteOrderMark(raw: Buffer): boolean {
  return raw[0] === 0xef && raw[1] === 0xbb && raw[2] === 0xbf;
}

/** The first `data` line at or behind the start of a line; undefined where there is none. */
export function nextDataLine(raw: Buffer, from: number): DataLine | undefined {
  let lineStart = from;
  while (lineStart < raw.length) {
    const end = endOfLine(raw, lineStart);
    const next = raw[end] === CR && raw[end + 1] === LF ? end + 2 : end + 1;
    const start = startOfValue(raw, lineStart, end);
    if (start >= 0) return { lineStart, start, end, next: Math.min(next, raw.length) };
    lineStart = next;
  }
  return undefined;
}

export function firstDataLine(raw: Buffer): DataLine | undefined {
  return nextDataLine(raw, hasByteOrderMark(raw) ? 3 : 0);
}

/** The data of an event: one line is a view on `raw`, several are joined by a line feed. */
export function dataFrom(raw: Buffer, first: DataLine): Buffer {
  let line = nextDataLine(raw, first.next);
  if (line === undefined) return raw.subarray(first.start, first.end);
  // Trap: an event may have millions of lines, so they are not held but copied as they are found. No value is as long as its line.
  const data = Buffer.allocUnsafe(raw.length);
  let length = raw.copy(data, 0, first.start, first.end);
  for (; line !== undefined; line = nextDataLine(raw, line.next)) {
    data[length++] = LF;
    length += raw.copy(data, length, line.start, line.end);
  }
  return data.subarray(0, length);
}

function endOfLine(raw: Buffer, from: number): number {
  // By hand: an event's lines are short, and the two searches a native call would need are not cheaper.
  let at = from;
  while (at < raw.length && raw[at] !== LF && raw[at] !== CR) at++;
  return at;
}

/** Start of the value when the line is a `data` field (with or without colon), else -1. */
function startOfValue(raw: Buffer, lineStart: number, end: number): number {
  if (end - lineStart < FIELD.length) return -1;
  for (let i = 0; i < FIELD.length; i++) if (raw[lineStart + i] !== FIELD[i]) return -1;
  const at = lineStart + FIELD.length;
  if (at === end) return end;
  if (raw[at] !== COLON) return -1;
  return at + 1 < end && raw[at + 1] === SPACE ? at + 2 : at + 1;
}
