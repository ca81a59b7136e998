import { isDone } from './done-event.js';
import type { SseEvent } from './sse-event.js';

const QUOTE = 0x22;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Why a stream that ended with such an event counts as broken. */
export const CUT_IN_EVENT = 'stream cut in the middle of an event';

/**
 * Of an event that has no blank line although its stream has ended: whether it certainly was cut. Many servers leave the last
 * blank line out, so that alone tells nothing.
 */
export function isCut({ beginsObject, payload }: SseEvent): boolean {
  return beginsObject && payload !== undefined && endsInside(payload);
}

/** Whether an object, a list or a text of JSON is still open. What is closed is whole, whether or not anybody can read it. */
function endsInside(payload: Buffer): boolean {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < payload.length; at++) {
    const byte = payload[at];
    if (quoted) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) quoted = false;
    } else if (byte === QUOTE) quoted = true;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--;
  }
  return quoted || depth > 0;
}

/** Whether such an event certainly is all that was to be said. */
export function isWhole(event: SseEvent): boolean {
  if (event.payload !== undefined) return event.json !== undefined || isDone(event);
  // No line but empty ones and comments, of which there may be millions.
  return !/(?:^|[\r\n])[^:\r\n]/.test(event.raw.toString('latin1'));
}
