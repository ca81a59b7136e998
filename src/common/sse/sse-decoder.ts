import { ChunkList } from '../bytes/chunk-list.js';
import { SseEvent } from './sse-event.js';
import { SseFraming } from './sse-framing.js';
import { StreamLimitError } from './stream-limit.js';

export const EVENT_LIMIT_BYTES = 16 * 1024 * 1024;

/** One event is larger than what may be held in memory: the stream counts as broken. */
export class SseEventTooLargeError extends StreamLimitError {
  constructor(readonly limitBytes: number) {
    super('an event of the stream is too large', `an event of the stream is larger than ${limitBytes} bytes`);
    this.name = 'SseEventTooLargeError';
  }
}

/**
 * Cuts the bytes of one event stream into events. Owns the bytes of the event that is still open, lives as long as
 * the stream, and loses nothing: the `raw` of all events one after the other is the input. A blank line without an
 * event is an event without data, and so is an LF that came apart from its CR: whoever leaves out the next event must not take it along.
 */
export class SseDecoder {
  readonly #framing = new SseFraming();
  readonly #limitBytes: number;
  readonly #skipOversize: boolean;
  readonly #parts = new ChunkList();
  #skipping = false;

  /** With `oversize: 'skip'` an event beyond the limit is left out instead of ending the stream. */
  constructor(limitBytes = EVENT_LIMIT_BYTES, oversize: 'throw' | 'skip' = 'throw') {
    this.#limitBytes = limitBytes;
    this.#skipOversize = oversize === 'skip';
  }

  /** Bytes that wait for the end of their event. */
  get pending(): number {
    return this.#parts.length;
  }

  /** What came so far of the event whose blank line has not. */
  get open(): SseEvent | undefined {
    return this.pending === 0 ? undefined : new SseEvent(this.#parts.concat());
  }

  /** Between two events: nothing waits, not even a skipped one. */
  get idle(): boolean {
    return this.pending === 0 && !this.#skipping;
  }

  /** @throws SseEventTooLargeError when the open event grows beyond the limit; the decoder is useless then. */
  push(chunk: Buffer, onEvent: (event: SseEvent) => void): void {
    let from = 0;
    if (this.idle && this.#framing.takeLateLineFeed(chunk)) {
      onEvent(new SseEvent(chunk.subarray(0, 1)));
      from = 1;
    }
    while (from < chunk.length) {
      const end = this.#framing.next(chunk, from);
      this.#keep(
        from === 0 && end === chunk.length ? chunk : chunk.subarray(from, end < 0 ? chunk.length : end),
      );
      if (end < 0) return;
      this.#emit(onEvent);
      from = end;
    }
  }

  /** Takes in a chunk that begins and ends between two events and that nobody wants to see; false: it does not. */
  pass(chunk: Buffer): boolean {
    return this.idle && endsEvent(chunk) && this.#framing.skip(chunk);
  }

  /** The stream is over: what is left is a last event without its blank line. */
  end(onEvent: (event: SseEvent) => void): void {
    this.#emit(onEvent);
  }

  #keep(part: Buffer): void {
    if (this.#skipping) return;
    this.#parts.push(part);
    if (this.pending <= this.#limitBytes) return;
    if (!this.#skipOversize) throw new SseEventTooLargeError(this.#limitBytes);
    this.#parts.take();
    this.#skipping = true;
  }

  #emit(onEvent: (event: SseEvent) => void): void {
    this.#skipping = false;
    if (this.pending === 0) return;
    const raw = this.#parts.concat();
    this.#parts.take();
    onEvent(new SseEvent(raw));
  }
}

/** Whether these bytes end in a blank line, whatever stands before them. */
export function endsEvent(bytes: Buffer): boolean {
  const end = bytes.length;
  const last = bytes[end - 1];
  if (last === 13) return bytes[end - 2] === 13 || bytes[end - 2] === 10;
  if (last !== 10) return false;
  if (bytes[end - 2] === 10) return true;
  return bytes[end - 2] === 13 && (bytes[end - 3] === 10 || bytes[end - 3] === 13);
}
