import { SseEvent } from '../common/sse/sse-event.js';

const QUOTE = 34;
const LESS_THAN = 60;
const BACKSLASH = 92;
const LETTER_U = 117;
const CONTENT_KEY = Buffer.from('"content"');
const REASONING_KEY = Buffer.from('"reasoning_content"');

/**
 * One event inside a thought, with a hole where its text stands. The next ones mostly are the same bytes around
 * another text: then they need not be parsed, only their key is exchanged. Holds copies, so that no chunk stays in
 * memory; never decides about an event that differs in anything but one plain JSON string.
 */
export class ThoughtTemplate {
  private constructor(
    private readonly before: Buffer,
    private readonly after: Buffer,
    /** `before` with the other key; null where such events are dropped. */
    private readonly renamed: Buffer | null,
  ) {}

  /**
   * @param content the delta's content as a view on `raw`: a JSON string without a tag
   * @param drop the text is all such an event carries, and it is not wanted
   * @returns undefined where the key cannot be exchanged safely
   */
  static of(raw: Buffer, content: Buffer, drop: boolean): ThoughtTemplate | undefined {
    const start = content.byteOffset - raw.byteOffset;
    const end = start + content.length;
    if (content.buffer !== raw.buffer || start < 0 || end > raw.length) return undefined;
    const key = raw.indexOf(CONTENT_KEY);
    // Another `"content"` anywhere could be a twin of this key; white space around the colon is nobody's habit.
    if (key < 0 || key + CONTENT_KEY.length + 1 !== start || raw.includes(CONTENT_KEY, start))
      return undefined;
    const renamed = drop
      ? null
      : Buffer.concat([raw.subarray(0, key), REASONING_KEY, raw.subarray(start - 1, start)]);
    return new ThoughtTemplate(Buffer.from(raw.subarray(0, start)), Buffer.from(raw.subarray(end)), renamed);
  }

  /** What becomes of this event: another one, `null` (not sent), or undefined: it is not like the template. */
  apply(raw: Buffer): SseEvent | null | undefined {
    const { before, after, renamed } = this;
    const end = raw.length - after.length;
    if (!isPlainText(raw, before.length, end)) return undefined;
    if (raw.compare(before, 0, before.length, 0, before.length) !== 0) return undefined;
    if (raw.compare(after, 0, after.length, end) !== 0) return undefined;
    if (renamed === null) return null;
    const bytes = Buffer.allocUnsafe(renamed.length + raw.length - before.length);
    renamed.copy(bytes);
    raw.copy(bytes, renamed.length, before.length);
    return new SseEvent(bytes);
  }
}

/** One JSON string with something in it, from quote to quote, that can hold neither a tag nor the start of one. */
function isPlainText(raw: Buffer, start: number, end: number): boolean {
  const last = end - 1;
  if (last - start < 2 || raw[start] !== QUOTE || raw[last] !== QUOTE) return false;
  let at = start + 1;
  while (at < last) {
    const byte = raw[at]!;
    if (byte === QUOTE || byte === LESS_THAN || byte < 0x20) return false;
    if (byte === BACKSLASH && raw[++at] === LETTER_U) return false;
    at++;
  }
  return at === last;
}
