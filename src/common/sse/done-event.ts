import type { SseEvent } from './sse-event.js';

const TEXT = '[DONE]';
const BYTES = Buffer.from(TEXT);

/** The event that ends a stream of the OpenAI protocol. */
export function isDone({ payload }: SseEvent): boolean {
  return payload !== undefined && payload.length < 64 && payload.toString('latin1').trim() === TEXT;
}

/** Whether one may be in these bytes. */
export function mayHoldDone(bytes: Buffer): boolean {
  return bytes.includes(BYTES);
}
