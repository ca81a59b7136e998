import type { JsonDocument } from '../common/json/json-document.js';
import type { SseEvent } from '../common/sse/sse-event.js';

/**
 * Changes the answer of one attempt. Made by `onResponse` for each answer, used by one stream, thrown away at its end.
 * Everything here is synchronous: after the commit nothing may wait, and nothing may throw for a reason that the
 * answer's bytes give.
 */
export interface StreamTransform {
  /**
   * Texts this transform looks for at this moment; an event whose bytes hold none of them is passed by without
   * a call. `null` = every event. Read anew before each event, so a transform may change it with its state.
   */
  readonly needles: readonly string[] | null;
  /** Emits what takes the event's place: nothing, the same event, or several, in order. */
  push(event: SseEvent, emit: (event: SseEvent) => void): void;
  /**
   * The answer ended (cleanly or not), or said `[DONE]`, which is sent behind what this emits: emits what was held back.
   * Where another upstream goes on with an answer that broke, that is not sent: the other one is asked from what was sent.
   * Called again only where data came behind `[DONE]`.
   */
  flush(emit: (event: SseEvent) => void): void;
  /** The same change on a whole JSON answer. */
  whole(answer: JsonDocument): void;
}

/** Sees the answer of one attempt after all transforms, and cannot change it: a piped answer stays piped. */
export interface StreamObserver {
  /** As in {@link StreamTransform.needles}. */
  readonly needles: readonly string[] | null;
  observe(event: SseEvent): void;
  /** A whole JSON answer. Not called for answers over 8 MiB or with a content coding, which are not held or not read. */
  whole?(answer: JsonDocument): void;
  /**
   * The bytes of a JSON answer over 8 MiB, in order and cut anywhere, as they pass by. Never write into them, nor keep
   * them. Such an answer may still break off.
   */
  piece?(bytes: Buffer): void;
}
