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

/** All `data` lines of one event, in order. */
export function dataLinesOf(raw: Buffer): readonly DataLine[] {
  const lines: DataLine[] = [];
  let lineStart = hasByteOrderMark(raw) ? 3 : 0;
  while (lineStart < raw.length) {
    const end = endOfLine(raw, lineStart);
    const next = raw[end] === CR && raw[end + 1] === LF ? end + 2 : end + 1;
    const start = startOfValue(raw, lineStart, end);
    if (start >= 0) lines.push({ lineStart, start, end, next: Math.min(next, raw.length) });
    lineStart = next;
  }
  return lines;
}

/** The data: one line is a view on `raw`, several are joined by a line feed; undefined for none. */
export function joinLines(raw: Buffer, lines: readonly DataLine[]): Buffer | undefined {
  const first = lines[0];
  if (first === undefined) return undefined;
  if (lines.length === 1) return raw.subarray(first.start, first.end);
  const pieces: Buffer[] = [];
  for (const line of lines) pieces.push(raw.subarray(line.start, line.end), Buffer.of(LF));
  return Buffer.concat(pieces.slice(0, -1));
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
