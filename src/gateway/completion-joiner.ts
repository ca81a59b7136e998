import type { JsonDocument } from '../common/json/json-document.js';
import type { SseEvent } from '../common/sse/sse-event.js';
import { checkRoom } from '../common/sse/stream-limit.js';
import { isNothing } from '../common/json/raw-value.js';
import { ChoiceJoiner, objectOf } from './choice-joiner.js';

/** Keys of a chunk that are not taken over as they are. */
const OWN_KEYS: ReadonlySet<string> = new Set(['object', 'choices', 'usage']);
const LEADING_KEYS = ['id', 'object', 'created', 'model'] as const;

/**
 * Joins the chunks of one stream to the `chat.completion` that a client without `stream` asked for (spec 01 §8). Owns
 * what was read so far; lives as long as the answer. Values it does not have to join keep their bytes.
 */
export class CompletionJoiner {
  readonly #top = new Map<string, Buffer>();
  readonly #choices = new Map<number, ChoiceJoiner>();
  #usage: Buffer | undefined;
  #chunks = 0;
  #unreadable = false;
  #errorSeen = false;

  /**
   * Events that are no JSON object (comments, `[DONE]`) are passed over.
   * @throws StreamLimitError where the answer has too many choices, tool calls or members
   */
  push(event: SseEvent): void {
    const chunk = event.json;
    if (chunk === undefined) {
      const data = event.data ?? '';
      if (data !== '' && data !== '[DONE]') this.#unreadable = true;
      return;
    }
    this.#chunks++;
    if (!isNothing(chunk.raw('error'))) this.#errorSeen = true;
    for (const key of chunk.keys()) {
      const value = chunk.raw(key);
      if (value === undefined || isNothing(value)) continue;
      if (key === 'usage') this.#usage = value;
      else if (!OWN_KEYS.has(key) && !this.#top.has(key)) {
        checkRoom(this.#top, 'members');
        this.#top.set(key, value);
      }
    }
    this.#pushChoices(chunk);
  }

  /** The provider sent an error and not one choice. */
  get error(): boolean {
    return this.#errorSeen && this.#choices.size === 0;
  }

  /** That error as the provider would have sent it in an answer that is no stream. */
  get errorObject(): Buffer | undefined {
    const error = this.error ? this.#top.get('error') : undefined;
    return error === undefined ? undefined : Buffer.concat(objectOf(new Map([['error', error]])));
  }

  /** The provider sent an error behind a part of the answer: it must not be taken for a whole one. */
  get interrupted(): boolean {
    return this.#errorSeen && this.#choices.size > 0;
  }

  /** Something was said, but nothing that is a chunk: no answer, and no empty one either. */
  get meaningless(): boolean {
    return this.#chunks === 0 && this.#unreadable;
  }

  /**
   * Trap: where not one chunk came there is no choice to join, and clients reach for the first one without a look; an
   * empty answer is one whose text is empty.
   */
  result(): Buffer {
    const members = new Map<string, Buffer | readonly Buffer[]>();
    this.#top.set('object', Buffer.from('"chat.completion"'));
    for (const key of LEADING_KEYS) {
      const value = this.#top.get(key);
      if (value !== undefined) members.set(key, value);
    }
    if (this.#chunks === 0) this.#choices.set(0, new ChoiceJoiner(0));
    members.set('choices', this.#joinedChoices());
    if (this.#usage !== undefined) members.set('usage', this.#usage);
    for (const [key, value] of this.#top) if (!members.has(key)) members.set(key, value);
    return Buffer.concat(objectOf(members));
  }

  #pushChoices(chunk: JsonDocument): void {
    const choices = chunk.array('choices');
    for (let i = 0; i < (choices?.length ?? 0); i++) {
      const choice = choices?.object(i);
      if (choice === undefined) continue;
      const index = choice.get('index');
      const key = typeof index === 'number' && Number.isInteger(index) ? index : 0;
      let joiner = this.#choices.get(key);
      if (joiner === undefined) {
        checkRoom(this.#choices, 'choices');
        this.#choices.set(key, (joiner = new ChoiceJoiner(key)));
      }
      joiner.push(choice);
    }
  }

  #joinedChoices(): Buffer[] {
    const sorted = [...this.#choices].sort(([one], [other]) => one - other);
    const parts: Buffer[] = [Buffer.from('[')];
    for (const [i, [, choice]] of sorted.entries())
      parts.push(Buffer.from(i > 0 ? ',' : ''), ...choice.result());
    return [...parts, Buffer.from(']')];
  }
}
