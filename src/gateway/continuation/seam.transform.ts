import type { JsonDocument } from '../../common/json/json-document.js';
import { isEmptyValue } from '../../common/json/raw-value.js';
import type { SseEvent } from '../../common/sse/sse-event.js';
import type { StreamTransform } from '../../contracts/stream.js';
import { Brings, meaningOf } from '../answer/chunk-meaning.js';
import { EchoFilter, type EchoVerdict } from './echo-filter.js';
import type { RelayedAnswer } from './relayed-answer.js';

/** What waits with a text that may be an echo is no more than this; the text itself is no longer than the echo. */
const HELD_WITHOUT_TEXT = 1024;
const HELD_LIMIT_BYTES = 16 * 1024 * 1024;
/** Behind these no echo can follow. */
const ENDS_TEXT = Brings.finishReason | Brings.toolCalls | Brings.other;

type Emit = (event: SseEvent) => void;

/** An event that waits until it is known whether its text is an echo. */
interface Held {
  readonly event: SseEvent;
  readonly text: string;
}

/**
 * The last stage of a stream that another upstream may have to continue: keeps the {@link RelayedAnswer} up to date, and
 * makes a continuation look like the same answer — its id, no second role, no echo of what the client has. Lives for
 * the answer of one upstream. The first one's events pass untouched.
 */
export class SeamTransform implements StreamTransform {
  /** Every event counts. */
  readonly needles = null;
  /** The upstream said that it cannot go on; nothing behind that is sent. */
  errorSeen = false;
  /**
   * The stream broke: what is still held here has never been part of the answer, and what the stages before it held back is
   * none until it is sent. It is gathered in `late`.
   */
  broken = false;
  readonly late: SseEvent[] = [];
  #closed = false;
  #emitted = false;
  #role: SseEvent | null = null;
  readonly #continuing: boolean;
  #echo: EchoFilter | null;
  #held: Held[] = [];
  #heldBytes = 0;
  #heldWithoutText = 0;

  /** @param echoes texts that a continuation may begin with without being new */
  constructor(
    private readonly answer: RelayedAnswer,
    echoes: readonly string[],
  ) {
    this.#continuing = answer.begun;
    this.#echo = this.#continuing && answer.text !== '' ? new EchoFilter(echoes) : null;
  }

  /**
   * False for an error event and all behind it. Asked before any stage sees the event: for them an error is the end of the text, so
   * that they would give away what they hold, and here it is a break.
   */
  admits(event: SseEvent): boolean {
    this.errorSeen ||= (meaningOf(event) & Brings.error) !== 0;
    return !this.errorSeen;
  }

  push(event: SseEvent, emit: Emit): void {
    if (this.#closed) return;
    const brings = meaningOf(event);
    if ((brings & Brings.error) !== 0) {
      this.errorSeen = this.#closed = true;
      return;
    }
    if (!this.#continuing) this.#send(event, emit);
    else if (event.json === undefined) this.#pushOther(event, emit);
    else this.#pushChunk(event, event.json.fork(), emit);
  }

  flush(emit: Emit): void {
    if (this.broken) this.#held = [];
    else this.#release(emit);
  }

  whole(): void {}

  /** A comment, or data that is no object: `[DONE]` ends all waiting. */
  #pushOther(event: SseEvent, emit: Emit): void {
    if (event.payload !== undefined && event.payload.length > 0) {
      this.#release(emit);
      this.#send(event, emit);
    } else if (this.#emitted) {
      this.#send(event, emit);
    }
  }

  #pushChunk(event: SseEvent, chunk: JsonDocument, emit: Emit): void {
    for (const [key, value] of this.answer.identity) chunk.setRaw(key, value);
    const choices = chunk.array('choices');
    const delta = choices?.object(0)?.object('delta');
    if (delta !== undefined && this.answer.roleSent) delta.delete('role');
    const own = event.withData(chunk.parts());
    const brings = meaningOf(own);
    const usage = !isEmptyValue(chunk.raw('usage'));
    if (brings === Brings.nothing && !usage) {
      // A first role is sent with what it belongs to, and only then.
      if (!isEmptyValue(delta?.raw('role'))) this.#role = own;
      return;
    }
    if (this.#echo === null) {
      this.#send(own, emit);
      return;
    }
    const text = delta?.string('content') ?? '';
    this.#held.push({ event: own, text });
    this.#heldBytes += own.raw.length;
    if (text === '') this.#heldWithoutText++;
    if (text !== '' && this.#judged(this.#echo.push(text), emit)) return;
    const tooMuch = this.#heldWithoutText > HELD_WITHOUT_TEXT || this.#heldBytes > HELD_LIMIT_BYTES;
    const ends = tooMuch || (brings & ENDS_TEXT) !== 0 || (usage && (choices?.length ?? 0) === 0);
    if (ends) this.#release(emit);
    else if (this.#held.every((held) => held.text === '')) this.#sendHeld(emit);
  }

  /** Whatever is held is judged by what came so far. */
  #release(emit: Emit): void {
    if (this.#echo !== null) this.#judged(this.#echo.decide(), emit);
  }

  /** Sends what is no echo; false while nobody knows. */
  #judged(verdict: EchoVerdict, emit: Emit): boolean {
    if (verdict.kind === 'undecided') return false;
    this.#echo = null;
    let left = verdict.echoLength;
    for (const { event, text } of this.#held) {
      const cut = Math.min(left, text.length);
      left -= cut;
      const rest = cut === 0 ? event : withContent(event, text.slice(cut));
      if (rest !== null) this.#send(rest, emit);
    }
    this.#held = [];
    this.#heldBytes = this.#heldWithoutText = 0;
    return true;
  }

  #sendHeld(emit: Emit): void {
    for (const { event } of this.#held) this.#send(event, emit);
    this.#held = [];
    this.#heldBytes = this.#heldWithoutText = 0;
  }

  #send(event: SseEvent, emit: Emit): void {
    this.#emitted = true;
    const role = this.#role;
    this.#role = null;
    if (role !== null) this.#send(role, emit);
    if (this.broken) this.late.push(event);
    else this.answer.sent(event);
    emit(event);
  }
}

/** The same chunk with another text; null where nothing is left of it. */
function withContent(event: SseEvent, text: string): SseEvent | null {
  const chunk = event.json?.fork();
  const delta = chunk?.array('choices')?.object(0)?.object('delta');
  if (chunk === undefined || delta === undefined) return event;
  delta.set('content', text);
  const changed = event.withData(chunk.parts());
  return meaningOf(changed) === Brings.nothing && isEmptyValue(chunk.raw('usage')) ? null : changed;
}
