import { JsonDocument } from '../json/json-document.js';
import { dataFrom, firstDataLine, hasByteOrderMark, nextDataLine, type DataLine } from './data-lines.js';

const DATA_FIELD = Buffer.from('data: ');
/** Of `data` alone: a line without colon has no room for a value. */
const FIELD_LENGTH = 4;
const BLANK_LINE = Buffer.from('\n\n');
const LF = 10;
const OPEN_BRACE = 123;

/**
 * One server-sent event as it came: its raw bytes (blank line included, where there was one) with lazily parsed data.
 * Immutable. https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
 */
export class SseEvent {
  #first: DataLine | undefined | null = null;
  #payload: Buffer | undefined | null = null;
  #json: JsonDocument | undefined | null = null;

  constructor(readonly raw: Buffer) {}

  /** An event with this data; line feeds in it become several `data:` lines. */
  static of(data: string): SseEvent {
    return new SseEvent(Buffer.from(`data: ${data.replaceAll('\n', '\ndata: ')}\n\n`, 'utf8'));
  }

  /** An event with these bytes, which hold no line feed, as its data. */
  static ofBytes(parts: readonly Buffer[]): SseEvent {
    return new SseEvent(Buffer.concat([DATA_FIELD, ...parts, BLANK_LINE]));
  }

  /** The `data:` lines joined by a line feed; undefined for an event without one (a comment, say). */
  get data(): string | undefined {
    return this.payload?.toString('utf8');
  }

  /** The bytes of {@link data}. Never change them. */
  get payload(): Buffer | undefined {
    if (this.#payload === null) {
      const first = this.#firstLine();
      this.#payload = first && dataFrom(this.raw, first);
    }
    return this.#payload;
  }

  /** The data as a JSON object; undefined where it is none. Read-only: `fork()` it to change it. */
  get json(): JsonDocument | undefined {
    if (this.#json === null) {
      const payload = this.payload;
      this.#json =
        payload !== undefined && beginsObject(payload) ? JsonDocument.tryParse(payload) : undefined;
    }
    return this.#json;
  }

  /** The data begins as a JSON object, whether or not it is one. */
  get beginsObject(): boolean {
    return this.payload !== undefined && beginsObject(this.payload);
  }

  /**
   * The same event with other data: its further lines (`event:`, `id:`, comments) and its line ends stay. Data that
   * holds line feeds becomes several lines in the place of the first one.
   */
  withData(parts: readonly Buffer[]): SseEvent {
    const first = this.#firstLine();
    if (first === undefined) return SseEvent.ofBytes(parts);
    let line = nextDataLine(this.raw, first.next);
    const head = this.raw.subarray(0, first.start);
    const simple = line === undefined && first.start - first.lineStart > FIELD_LENGTH;
    if (simple && !parts.some((part) => part.includes(LF))) {
      return new SseEvent(Buffer.concat([head, ...parts, this.raw.subarray(first.end)]));
    }
    const pieces = [this.raw.subarray(0, first.lineStart), ...asLines(Buffer.concat(parts))];
    // Copied together: between millions of `data` lines there may be as many others.
    const rest = Buffer.allocUnsafe(this.raw.length - first.end);
    let length = 0;
    let from = first.end;
    for (; line !== undefined; line = nextDataLine(this.raw, line.next)) {
      length += this.raw.copy(rest, length, from, line.lineStart);
      from = line.next;
    }
    length += this.raw.copy(rest, length, from);
    pieces.push(rest.subarray(0, length));
    return new SseEvent(Buffer.concat(pieces));
  }

  /** The same event to be sent again behind itself: a byte order mark is one at the start of a stream only. */
  withoutByteOrderMark(): SseEvent {
    return hasByteOrderMark(this.raw) ? new SseEvent(this.raw.subarray(3)) : this;
  }

  #firstLine(): DataLine | undefined {
    if (this.#first === null) this.#first = firstDataLine(this.raw);
    return this.#first;
  }
}

/** First byte that is not white space is `{`. */
function beginsObject(payload: Buffer): boolean {
  for (const byte of payload) {
    if (byte === OPEN_BRACE) return true;
    if (byte !== 32 && byte !== 9 && byte !== LF && byte !== 13) return false;
  }
  return false;
}

function asLines(data: Buffer): Buffer[] {
  const pieces: Buffer[] = [DATA_FIELD];
  let from = 0;
  for (let at = data.indexOf(LF); at >= 0; at = data.indexOf(LF, from)) {
    pieces.push(data.subarray(from, at + 1), DATA_FIELD);
    from = at + 1;
  }
  pieces.push(data.subarray(from));
  return pieces;
}
