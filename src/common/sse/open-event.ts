import { isDone } from './done-event.js';
import type { SseEvent } from './sse-event.js';

/** Why a stream that ended with such an event counts as broken. */
export const CUT_IN_EVENT = 'stream cut in the middle of an event';

/**
 * Of an event that has no blank line although its stream has ended: whether it certainly was cut. Many servers leave the last
 * blank line out, so that alone tells nothing.
 */
export function isCut({ beginsObject, json }: SseEvent): boolean {
  return beginsObject && json === undefined;
}

/** Whether such an event certainly is all that was to be said. */
export function isWhole(event: SseEvent): boolean {
  if (event.payload !== undefined) return event.json !== undefined || isDone(event);
  const lines = event.raw.toString('latin1').split(/[\r\n]/);
  return lines.every((line) => line === '' || line.startsWith(':'));
}
