import { SseDecoder, SseEventTooLargeError } from '../../common/sse/sse-decoder.js';
import type { SseEvent } from '../../common/sse/sse-event.js';

/** What says nothing for so long is no sign of life. */
const LIMIT_BYTES = 64 * 1024;

/** Looks for the first event of a stream that means something to a client. Lives until it has come. */
export class FirstMeaning {
  readonly #decoder = new SseDecoder(LIMIT_BYTES);
  #found = false;

  /** True once it has come: nothing need be looked at any more. */
  in(chunk: Buffer): boolean {
    try {
      this.#decoder.push(chunk, (event) => this.#look(event));
    } catch (error) {
      if (!(error instanceof SseEventTooLargeError)) throw error;
      this.#found = true;
    }
    return this.#found;
  }

  #look(event: SseEvent): void {
    this.#found ||= meansSomething(event);
  }
}

function meansSomething(event: SseEvent): boolean {
  const { json, payload } = event;
  if (payload === undefined) return false;
  if (json === undefined) return true;
  const choices = json.array('choices');
  for (let i = 0; i < (choices?.length ?? 0); i++) {
    const choice = choices?.object(i);
    if (choice === undefined) continue;
    if ((choice.get('finish_reason') ?? null) !== null) return true;
    const delta = choice.object('delta');
    for (const key of delta?.keys() ?? []) {
      const value = delta?.get(key);
      if (key !== 'role' && value !== null && value !== '') return true;
    }
  }
  return json.has('error');
}
