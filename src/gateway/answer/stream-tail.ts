import { isDone } from '../../common/sse/done-event.js';
import { EVENT_LIMIT_BYTES, SseDecoder } from '../../common/sse/sse-decoder.js';
import type { SseEvent } from '../../common/sse/sse-event.js';
import type { InterruptionPhase } from '../../observability/metrics/gateway.metrics.js';
import { Brings, CONTENT, meaningOf } from './chunk-meaning.js';

/** Members that begin an answer where their value is not empty. */
const BEGINNINGS = ['content', 'reasoning_content', 'reasoning', 'tool_calls', 'text', 'refusal'].map((key) =>
  Buffer.from(`"${key}"`),
);
const COLON = 58;
const QUOTE = 34;
const OPEN_ARRAY = 91;

/**
 * Remembers the end of what a piped stream said, so that a break can be told by what it broke into. Keeps two chunks,
 * lives as long as the answer, and reads events only when somebody asks: a stream that does not break is never parsed.
 */
export class StreamTail {
  #previous: Buffer | null = null;
  #last: Buffer | null = null;
  #begun = false;
  #forgot = false;

  saw(chunk: Buffer): void {
    if (!this.#begun) this.#begun = begins(chunk);
    if (this.#previous !== null) this.#forgot = true;
    this.#previous = this.#last;
    this.#last = chunk;
  }

  /** `[DONE]` was the last data that came: all of the answer is there. */
  get done(): boolean {
    const events: SseEvent[] = [];
    const decoder = this.#events((event) => events.push(event));
    // Trap: what is kept may begin amid an event, whose rest only looks like one.
    const known = this.#forgot ? events.slice(1) : events;
    const last = known.findLast(({ payload }) => payload !== undefined);
    return last !== undefined && decoder.idle && isDone(last);
  }

  phase(): InterruptionPhase {
    let brings = 0;
    this.#events((event) => (brings |= isDone(event) ? Brings.finishReason : meaningOf(event)));
    return phaseOf(brings, this.#begun);
  }

  #events(onEvent: (event: SseEvent) => void): SseDecoder {
    const decoder = new SseDecoder(EVENT_LIMIT_BYTES, 'skip');
    for (const chunk of [this.#previous, this.#last]) if (chunk !== null) decoder.push(chunk, onEvent);
    return decoder;
  }
}

/** @param begun content came before what `brings` tells of */
export function phaseOf(brings: number, begun: boolean): InterruptionPhase {
  if ((brings & Brings.finishReason) !== 0) return 'after_finish';
  if ((brings & Brings.toolCalls) !== 0) return 'tool_calls';
  return begun || (brings & CONTENT) !== 0 ? 'content' : 'before_content';
}

/** By the bytes alone; a stream shows it within its first chunks. */
function begins(chunk: Buffer): boolean {
  for (const key of BEGINNINGS) {
    for (let at = chunk.indexOf(key); at >= 0; at = chunk.indexOf(key, at + 1)) {
      if (holdsValue(chunk, at + key.length)) return true;
    }
  }
  return false;
}

/** A text or a list that is not empty. */
function holdsValue(chunk: Buffer, from: number): boolean {
  let at = from;
  while (at < chunk.length && (chunk[at]! <= 32 || chunk[at] === COLON)) at++;
  if (chunk[at] === QUOTE) return at + 1 < chunk.length && chunk[at + 1] !== QUOTE;
  return chunk[at] === OPEN_ARRAY && chunk[at + 1] === 123;
}
