import type { JsonDocument } from '../common/json/json-document.js';
import { SseEvent } from '../common/sse/sse-event.js';
import { isDone } from '../common/sse/done-event.js';
import { checkRoom } from '../common/sse/stream-limit.js';
import { isNothing } from '../common/json/raw-value.js';
import { ChoiceJoiner, objectOf } from './choice-joiner.js';
import { checkWhole, readable, UnreadableError } from './unreadable.js';

/** Keys of a chunk that are not taken over as they are. */
const OWN_KEYS: ReadonlySet<string> = new Set(['object', 'choices', 'usage']);
const LEADING_KEYS = ['id', 'object', 'created', 'model'] as const;

/**
 * Joins the chunks of one stream to the `chat.completion` that a client without `stream` asked for. Owns
 * what was read so far; lives as long as the answer. Values it does not have to join keep their bytes.
 */
export class CompletionJoiner {
  readonly #top = new Map<string, Buffer>();
  readonly #choices = new Map<number, ChoiceJoiner>();
  #usage: Buffer | undefined;
  #chunks = 0;
  #done = false;
  #unreadable = false;
  #errorSeen = false;

  /**
   * Comments are passed over, and so is all that comes behind `[DONE]`.
   * @throws StreamLimitError where the answer has too many choices, tool calls or members
   */
  push(event: SseEvent): void {
    if (this.#done) return;
    const chunk = event.json;
    if (chunk === undefined) {
      const lines = linesOf(event);
      if (lines !== null) for (const line of lines) this.push(line);
      else if (isDone(event)) this.#done = true;
      else if (!saysNothing(event.data ?? '')) this.#unreadable = true;
      return;
    }
    this.#chunks++;
    try {
      this.#pushChunk(chunk);
    } catch (error) {
      if (!(error instanceof UnreadableError)) throw error;
      this.#unreadable = true;
    }
  }

  #pushChunk(chunk: JsonDocument): void {
    if (!isNothing(chunk.raw('error'))) this.#errorSeen = true;
    for (const key of chunk.keys()) {
      const value = chunk.raw(key);
      if (value === undefined || isNothing(value)) continue;
      if (key !== 'choices') checkWhole(value);
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

  /** `[DONE]` came: the answer is whole, whatever follows. */
  get done(): boolean {
    return this.#done;
  }

  /**
   * What could not be read, in words of ours; null where all could. Trap: an answer without a part that nobody can read
   * looks like a whole one. An error that the provider told says more.
   */
  get fault(): string | null {
    if (!this.#unreadable || this.#errorSeen) return null;
    return this.#chunks === 0 ? 'stream without an answer' : 'an event of the stream cannot be read';
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
    const choices = readable(chunk.array('choices'), chunk.raw('choices'));
    for (let i = 0; i < (choices?.length ?? 0); i++) {
      const choice = readable(choices?.object(i), choices?.raw(i));
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

/** No data, or a JSON value that can carry no part of an answer. */
function saysNothing(data: string): boolean {
  return data === '' || /^(?:null|true|false|-?\d{1,20}(?:\.\d{1,20})?)$/.test(data.trim());
}

/**
 * Several whole chunks in one event: some servers leave out the blank line between events, and many clients read line by line.
 * Null where the lines are not each a chunk or `[DONE]`.
 */
function linesOf({ data }: SseEvent): SseEvent[] | null {
  const lines = data?.split('\n').filter((line) => line.trim() !== '') ?? [];
  if (lines.length < 2) return null;
  const events = lines.map((line) => SseEvent.of(line));
  return events.every((event) => event.json !== undefined || isDone(event)) ? events : null;
}
