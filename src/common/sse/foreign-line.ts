import type { SseEvent } from './sse-event.js';

/** Fields with or without a value, comments, and blank lines; a byte order mark is a part of no name. */
const KNOWN = /^\uFEFF?(?::|(?:data|event|id|retry)(?::|$)|$)/;
const LINE_END = /\r\n|[\r\n]/;
/** Longer than any event of another kind that is worth a look. */
const LOOKED_AT_BYTES = 64 * 1024;

/**
 * Whether an event without data holds a line that is none of an event stream: a reader of streams passes it over, and with it
 * an error or an answer that somebody sent under the wrong name.
 */
export function hasForeignLine({ payload, raw }: SseEvent): boolean {
  if (payload !== undefined) return false;
  const lines = raw.toString('utf8', 0, LOOKED_AT_BYTES).split(LINE_END);
  // Of the last one the end may be missing.
  if (raw.length > LOOKED_AT_BYTES) lines.pop();
  return lines.some((line) => !KNOWN.test(line));
}
