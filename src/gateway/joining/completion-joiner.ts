import { isUtf8 } from 'node:buffer';
import { ownBytes } from '../../common/bytes/own-bytes.js';
import { OPEN_ARRAY, OPEN_OBJECT } from '../../common/json/json-bytes.js';
import { isNothing } from '../../common/json/raw-value.js';
import { isDone } from '../../common/sse/done-event.js';
import { SseEvent } from '../../common/sse/sse-event.js';
import { checkRoom, StreamLimitError } from '../../common/sse/stream-limit.js';
import { ChoiceJoiner } from './choice-joiner.js';
import { JoinBudget } from './join-budget.js';
import { isJson } from './json-check.js';
import { eachItem, indexOf, membersOf } from './json-members.js';
import { objectInto, type Written } from './json-written.js';
import { readable, UnreadableError } from './unreadable.js';

/** Keys of a chunk that are not taken over as they are. */
const OWN_KEYS: ReadonlySet<string> = new Set(['object', 'choices', 'usage']);
const OPEN = Buffer.from('[');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from(']');
const LF = 10;
/** Of one event; each is a chunk that is read. */
export const LINE_LIMIT = 65_536;
/** The longest number that is looked at, with some white space around. */
const NOTHING_LIMIT_BYTES = 1024;
const LEADING_KEYS = ['id', 'object', 'created', 'model'] as const;

/**
 * Joins the chunks of one stream to the `chat.completion` that a client without `stream` asked for. Owns
 * what was read so far; lives as long as the answer. Values keep their bytes, and are read no deeper than they must be joined.
 */
export class CompletionJoiner {
  readonly #top = new Map<string, Buffer>();
  readonly #choices = new Map<number, ChoiceJoiner>();
  readonly #budget = new JoinBudget();
  #usage: Buffer | undefined;
  #chunks = 0;
  #done = false;
  #unreadable = false;
  #errorSeen = false;

  /**
   * Comments are passed over, and so is all that comes behind `[DONE]`.
   * @throws StreamLimitError where the answer has too many choices, tool calls or members, or costs too much to join
   */
  push(event: SseEvent): void {
    if (this.#done) return;
    if (event.json === undefined) {
      if (holdsEvents(event)) for (const line of linesOf(event)) this.push(SseEvent.ofBytes([line]));
      else if (isDone(event)) this.#done = true;
      else if (!saysNothing(event)) this.#unreadable = true;
      return;
    }
    this.#chunks++;
    try {
      this.#pushChunk(event);
    } catch (error) {
      if (!(error instanceof UnreadableError)) throw error;
      this.#unreadable = true;
    }
  }

  #pushChunk({ json, payload }: SseEvent): void {
    const error = json?.raw('error');
    if (error !== undefined && !isEmptyError(error)) {
      this.#errorSeen = true;
      // It can be told though the rest of the event may be broken.
      if (isJson(error)) this.#keep('error', error);
    }
    if (payload === undefined || !isJson(payload)) throw new UnreadableError();
    const chunk = membersOf(payload);
    for (const [key, value] of chunk) {
      if (isNothing(value) || (key === 'error' && isEmptyError(value))) continue;
      if (key === 'usage') this.#usage = value;
      else if (!OWN_KEYS.has(key)) this.#keep(key, value);
    }
    const choices = readable(chunk.get('choices'), OPEN_ARRAY);
    if (choices !== undefined) eachItem(choices, (choice) => this.#pushChoice(choice));
  }

  /** The first one of each. */
  #keep(key: string, value: Buffer): void {
    if (this.#top.has(key)) return;
    checkRoom(this.#top, 'members');
    this.#top.set(key, ownBytes(value));
  }

  /** The provider sent an error and not one choice. */
  get error(): boolean {
    return this.#errorSeen && this.#choices.size === 0;
  }

  /** That error as the provider would have sent it in an answer that is no stream. */
  get errorObject(): Buffer | undefined {
    const error = this.error ? this.#top.get('error') : undefined;
    return error === undefined ? undefined : bytesOf([['error', error]]);
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
    const members = new Map<string, Written>();
    this.#top.set('object', Buffer.from('"chat.completion"'));
    for (const key of LEADING_KEYS) {
      const value = this.#top.get(key);
      if (value !== undefined) members.set(key, value);
    }
    if (this.#chunks === 0) this.#choices.set(0, new ChoiceJoiner(0, this.#budget));
    members.set('choices', { into: (parts) => this.#choicesInto(parts) });
    if (this.#usage !== undefined) members.set('usage', this.#usage);
    for (const [key, value] of this.#top) if (!members.has(key)) members.set(key, value);
    return bytesOf(members);
  }

  #pushChoice(raw: Buffer): void {
    if (readable(raw, OPEN_OBJECT) === undefined) return;
    const choice = membersOf(raw);
    const index = indexOf(choice.get('index'));
    const key = index !== undefined && Number.isInteger(index) ? index : 0;
    let joiner = this.#choices.get(key);
    if (joiner === undefined) {
      checkRoom(this.#choices, 'choices');
      this.#choices.set(key, (joiner = new ChoiceJoiner(key, this.#budget)));
    }
    joiner.push(choice);
  }

  #choicesInto(parts: Buffer[]): void {
    const sorted = [...this.#choices].sort(([one], [other]) => one - other);
    parts.push(OPEN);
    for (const [i, [, choice]] of sorted.entries()) {
      if (i > 0) parts.push(COMMA);
      choice.into(parts);
    }
    parts.push(CLOSE);
  }
}

/**
 * Trap: the texts keep the bytes of the provider, and what is no UTF-8 among them would make the whole answer unreadable for strict
 * clients.
 */
function bytesOf(members: Iterable<readonly [string, Written]>): Buffer {
  const parts: Buffer[] = [];
  objectInto(parts, members);
  const bytes = Buffer.concat(parts);
  return isUtf8(bytes) ? bytes : Buffer.from(bytes.toString('utf8'));
}

/** Some servers send an empty one with each chunk. */
function isEmptyError(raw: Buffer): boolean {
  return (
    isNothing(raw) ||
    (raw.length < 16 && /^\s*(?:""|false|0|\{\s*\}|\[\s*\])\s*$/.test(raw.toString('latin1')))
  );
}

/** No data, or a JSON value that can carry no part of an answer. */
function saysNothing({ payload }: SseEvent): boolean {
  if (payload === undefined || payload.length === 0) return true;
  if (payload.length > NOTHING_LIMIT_BYTES) return false;
  return /^(?:null|true|false|-?\d{1,20}(?:\.\d{1,20})?)$/.test(payload.toString('utf8').trim());
}

/**
 * Several whole chunks in one event: some servers leave out the blank line between events, and many clients read line by line.
 * False where the lines are not each a chunk or `[DONE]`.
 * @throws StreamLimitError where they are so many that nothing else would be done for seconds
 */
function holdsEvents(event: SseEvent): boolean {
  let lines = 0;
  for (const line of linesOf(event)) {
    lines++;
    const one = SseEvent.ofBytes([line]);
    if (one.json === undefined && !isDone(one)) return false;
    if (lines > LINE_LIMIT)
      throw new StreamLimitError(`an event of the stream has more than ${LINE_LIMIT} chunks`);
  }
  return lines > 1;
}

/** The lines of the data that are not blank, one at a time: an event can have millions. */
function* linesOf({ payload }: SseEvent): Generator<Buffer> {
  if (payload === undefined) return;
  for (let from = 0; from < payload.length;) {
    const found = payload.indexOf(LF, from);
    const end = found < 0 ? payload.length : found;
    const line = payload.subarray(from, end);
    if (end > from && !isBlank(line)) yield line;
    from = end + 1;
  }
}

function isBlank(line: Buffer): boolean {
  return line[0] !== OPEN_OBJECT && line.toString('utf8').trim() === '';
}
