import type { JsonArray, JsonDocument } from '../common/json/json-document.js';
import { encodeJson } from '../common/json/json-encode.js';
import { checkRoom } from '../common/sse/stream-limit.js';
import { isNothing } from '../common/json/raw-value.js';
import { MessageJoiner } from './message-joiner.js';
import { checkWhole, readable } from './unreadable.js';

const JOINED_KEYS: ReadonlySet<string> = new Set(['index', 'delta', 'message']);
const NULL = Buffer.from('null');

/** One choice of a joined answer. Owns its message, its log probabilities and what else its chunks said. */
export class ChoiceJoiner {
  readonly #message = new MessageJoiner();
  /** The last value that was not null wins: a `finish_reason` comes once, at the end. */
  readonly #members = new Map<string, Buffer>();
  /** Lists of tokens, such as `content` and `refusal`. */
  readonly #logprobs = new Map<string, Buffer[]>();
  #started = false;

  constructor(private readonly index: number) {}

  push(choice: JsonDocument): void {
    // Some providers end with, or send only, a whole message instead of a delta.
    const delta =
      readable(choice.object('delta'), choice.raw('delta')) ??
      (this.#started ? undefined : readable(choice.object('message'), choice.raw('message')));
    if (delta !== undefined) this.#message.push(delta);
    this.#started = true;
    const logprobs = choice.object('logprobs');
    this.#pushLogprobs(logprobs);
    for (const key of choice.keys()) {
      const value = choice.raw(key);
      if (value === undefined || isNothing(value) || JOINED_KEYS.has(key)) continue;
      // What is no list of tokens, such as one number, is not joined.
      if (key === 'logprobs' && logprobs !== undefined) continue;
      checkWhole(value);
      if (!this.#members.has(key)) checkRoom(this.#members, 'members');
      this.#members.set(key, value);
    }
  }

  result(): Buffer[] {
    const members = new Map<string, Buffer | readonly Buffer[]>();
    members.set('index', Buffer.from(String(this.index)));
    members.set('message', encodeJson(this.#message.result()) ?? NULL);
    if (this.#logprobs.size > 0) {
      const lists = [...this.#logprobs].map(([key, items]) => [key, listOf(items)] as const);
      members.set('logprobs', objectOf(new Map(lists)));
    }
    members.set('finish_reason', this.#members.get('finish_reason') ?? NULL);
    for (const [key, value] of this.#members) if (!members.has(key)) members.set(key, value);
    return objectOf(members);
  }

  #pushLogprobs(logprobs: JsonDocument | undefined): void {
    for (const key of logprobs?.keys() ?? []) {
      const items: JsonArray | undefined = logprobs?.array(key);
      if (items === undefined) checkWhole(logprobs?.raw(key) ?? NULL);
      if (items === undefined) continue;
      let list = this.#logprobs.get(key);
      if (list === undefined) {
        checkRoom(this.#logprobs, 'members');
        this.#logprobs.set(key, (list = []));
      }
      for (let i = 0; i < items.length; i++) {
        const item = items.raw(i) ?? NULL;
        checkWhole(item);
        list.push(item);
      }
    }
  }
}

/** The bytes of an object with these members. */
export function objectOf(members: ReadonlyMap<string, Buffer | readonly Buffer[]>): Buffer[] {
  const parts: Buffer[] = [];
  for (const [key, value] of members) {
    parts.push(Buffer.from(`${parts.length === 0 ? '{' : ','}${JSON.stringify(key)}:`), ...[value].flat());
  }
  return parts.length === 0 ? [Buffer.from('{}')] : [...parts, Buffer.from('}')];
}

function listOf(items: readonly Buffer[]): Buffer[] {
  const parts: Buffer[] = [Buffer.from('[')];
  for (const [i, item] of items.entries()) parts.push(Buffer.from(i > 0 ? ',' : ''), item);
  return [...parts, Buffer.from(']')];
}
