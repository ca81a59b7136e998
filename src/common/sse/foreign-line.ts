import type { SseEvent } from './sse-event.js';

/** Fields with or without a value, comments, and blank lines; a byte order mark is a part of no name. */
const UNKNOWN = /^(?!\uFEFF?(?::|(?:data|event|id|retry)(?::|$)|$))/;
/** Beside data other fields may stand, but no object and no page. */
const BODY = /^\uFEFF?[{<]/;
const SHORTEST_LOOKED_AT = 8;
const LINE_END = /\r\n|[\r\n]/;
/** Longer than any event of another kind that is worth a look. */
const LOOKED_AT_BYTES = 64 * 1024;

/**
 * Whether an event holds a line that is none of an event stream: a reader of streams passes it over, and with it
 * an error or an answer that somebody sent under the wrong name.
 */
export function hasForeignLine({ payload, raw }: SseEvent): boolean {
  const foreign = payload === undefined ? UNKNOWN : BODY;
  const lines = raw.toString('utf8', 0, LOOKED_AT_BYTES).split(LINE_END);
  // Of the last one the end may be missing, of its name too.
  if (raw.length > LOOKED_AT_BYTES && (lines.at(-1) ?? '').length < SHORTEST_LOOKED_AT) lines.pop();
  return lines.some((line) => foreign.test(line));
}
