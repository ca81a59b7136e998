import { JsonEnd } from '../json/json-end.js';
import { isDone } from './done-event.js';
import type { SseEvent } from './sse-event.js';

/** Why a stream that ended with such an event counts as broken. */
export const CUT_IN_EVENT = 'stream cut in the middle of an event';

/**
 * Of an event that has no blank line although its stream has ended: whether it certainly was cut. Many servers leave the last
 * blank line out, so that alone tells nothing.
 */
export function isCut({ beginsObject, payload }: SseEvent): boolean {
  return beginsObject && payload !== undefined && endsInside(payload);
}

/** What is closed is whole, whether or not anybody can read it. */
function endsInside(payload: Buffer): boolean {
  const end = new JsonEnd();
  end.push(payload);
  return end.inside;
}

/** Whether such an event certainly is all that was to be said. */
export function isWhole(event: SseEvent): boolean {
  if (event.payload !== undefined) return event.json !== undefined || isDone(event);
  // No line but empty ones and comments, of which there may be millions.
  return !/(?:^|[\r\n])[^:\r\n]/.test(event.raw.toString('latin1'));
}
