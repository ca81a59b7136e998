import type { JsonDocument } from '../../common/json/json-document.js';
import { isEmptyValue } from '../../common/json/raw-value.js';
import type { SseEvent } from '../../common/sse/sse-event.js';
import type { InterruptionPhase } from '../../observability/metrics/gateway.metrics.js';
import type { AttemptOutcome } from '../attempt-outcome.js';
import { Brings, meaningOf } from '../answer/chunk-meaning.js';
import type { CompiledTarget } from '../compiled-target.js';
import { phaseOf } from '../answer/stream-tail.js';

/** What makes all chunks one answer; each as the first upstream said it. */
const IDENTITY_KEYS = ['id', 'created', 'model'] as const;
const DONE = '[DONE]';
/** Of text, in characters: a longer answer is given to the client all the same, but nobody can be asked to go on with it. */
const TEXT_LIMIT = 8 * 1024 * 1024;
/** Who begins these cannot be followed by somebody else. */
const NOT_TO_BE_CONTINUED = Brings.toolCalls | Brings.other | Brings.finishReason;

/** The attempt that broke off last. */
export interface Suspension {
  readonly outcome: AttemptOutcome;
  readonly target: CompiledTarget;
  readonly status: number;
}

/**
 * What the client has of one streamed answer, from whichever upstreams it came: enough for another one to go on where
 * the last one broke off. Lives as long as the exchange; never sends anything itself.
 */
export class RelayedAnswer {
  /** The head was sent: from here the client is told everything in band. */
  begun = false;
  status = 0;
  /** How the attempt ended that was to be followed by another one. */
  suspension: Suspension | null = null;
  /** What the stages held back when the last upstream broke off, as bytes: for the client, where nobody goes on. */
  withheld: readonly Buffer[] = [];
  readonly identity = new Map<string, Buffer>();
  #text = '';
  #brings = 0;
  #roleSent = false;
  #doneSent = false;
  #severalChoices = false;

  /** Null where a break cannot be repaired, whatever the file says: no stream, no messages, or several answers at once. */
  static of(body: JsonDocument): RelayedAnswer | null {
    if (!body.isTrue('stream') || asksForSeveral(body)) return null;
    return body.raw('messages')?.[0] === 0x5b ? new RelayedAnswer() : null;
  }

  /** What an upstream is asked for, patches and all. */
  asked(body: JsonDocument): void {
    if (asksForSeveral(body)) this.#severalChoices = true;
  }

  begin(status: number): void {
    this.begun = true;
    this.status = status;
  }

  suspend(outcome: AttemptOutcome, target: CompiledTarget): void {
    this.suspension = { outcome, target, status: this.status };
  }

  /** The text that the client has. */
  get text(): string {
    return this.#text;
  }

  get roleSent(): boolean {
    return this.#roleSent;
  }

  /** The client knows that the answer is complete. */
  get doneSent(): boolean {
    return this.#doneSent;
  }

  /** Nothing of the answer is missing but, perhaps, its formal end. */
  get finished(): boolean {
    return this.#doneSent || (this.#brings & Brings.finishReason) !== 0;
  }

  /** Whether another upstream can go on: there is plain text, or nothing at all. */
  get continuable(): boolean {
    if (this.#doneSent || this.#severalChoices || (this.#brings & NOT_TO_BE_CONTINUED) !== 0) return false;
    return this.#text !== '' || (this.#brings & Brings.reasoning) === 0;
  }

  get phase(): InterruptionPhase {
    return this.#doneSent ? 'after_finish' : phaseOf(this.#brings, false);
  }

  /** Something that the client should have had is lost: nobody can go on behind it. */
  spoil(): void {
    this.#brings |= Brings.other;
  }

  /** An event is on its way to the client. */
  sent(event: SseEvent): void {
    const chunk = event.json;
    if (chunk === undefined) {
      if (event.data === DONE) this.#doneSent = true;
      else if ((meaningOf(event) & Brings.unreadable) !== 0) this.#brings |= Brings.other;
      return;
    }
    for (const key of IDENTITY_KEYS) {
      const value = chunk.raw(key);
      // A copy: the bytes of a chunk must not stay in memory for the sake of an id.
      if (!this.identity.has(key) && value !== undefined && !isEmptyValue(value))
        this.identity.set(key, Buffer.from(value));
    }
    this.#brings |= meaningOf(event);
    const choices = chunk.array('choices');
    for (let i = 0; i < (choices?.length ?? 0); i++) {
      const choice = choices?.object(i);
      if (choice !== undefined) this.#choice(choice);
    }
  }

  #choice(choice: JsonDocument): void {
    if ((choice.get('index') ?? 0) !== 0) this.#severalChoices = true;
    const delta = choice.object('delta');
    if (delta === undefined) {
      // Text in another form than a delta: nobody can say what a continuation would be.
      if (choice.has('text') || choice.has('message')) this.#brings |= Brings.other;
      return;
    }
    if (!isEmptyValue(delta.raw('role'))) this.#roleSent = true;
    const raw = delta.raw('content');
    if (isEmptyValue(raw)) return;
    const text = delta.string('content');
    // Bytes that are no valid string reached the client all the same.
    if (text === undefined) this.#brings |= Brings.other;
    else if (this.#text.length + text.length <= TEXT_LIMIT) this.#text += text;
    else {
      this.#text = '';
      this.spoil();
    }
  }
}

function asksForSeveral(body: JsonDocument): boolean {
  return (body.number('n') ?? 1) > 1;
}
