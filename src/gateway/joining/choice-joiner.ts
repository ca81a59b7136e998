import { ownBytes } from '../../common/bytes/own-bytes.js';
import { OPEN_ARRAY, OPEN_OBJECT } from '../../common/json/json-bytes.js';
import { isNothing } from '../../common/json/raw-value.js';
import { checkRoom } from '../../common/sse/stream-limit.js';
import type { JoinBudget } from './join-budget.js';
import { JoinedList } from './joined-list.js';
import { membersOf } from './json-members.js';
import { NULL, objectInto, type Written } from './json-written.js';
import { MessageJoiner } from './message-joiner.js';
import { readable } from './unreadable.js';

const JOINED_KEYS: ReadonlySet<string> = new Set(['index', 'delta', 'message']);

/** One choice of a joined answer. Owns its message, its log probabilities and what else its chunks said. */
export class ChoiceJoiner {
  readonly #message: MessageJoiner;
  /** The last value that was not null wins: a `finish_reason` comes once, at the end. */
  readonly #members = new Map<string, Buffer>();
  /** Lists of tokens, such as `content` and `refusal`. */
  readonly #logprobs = new Map<string, JoinedList>();

  constructor(
    private readonly index: number,
    private readonly budget: JoinBudget,
  ) {
    this.#message = new MessageJoiner(budget);
  }

  push(choice: ReadonlyMap<string, Buffer>): void {
    const delta = readable(choice.get('delta'), OPEN_OBJECT);
    if (delta !== undefined) this.#message.push(delta);
    // Some providers end with, or send only, a whole message instead of deltas; others repeat what those said.
    const whole = this.#message.silent ? readable(choice.get('message'), OPEN_OBJECT) : undefined;
    if (whole !== undefined) this.#message.push(whole);
    for (const [key, value] of choice) {
      if (isNothing(value) || JOINED_KEYS.has(key)) continue;
      // What is no list of tokens, such as one number, is not joined.
      if (key === 'logprobs' && value[0] === OPEN_OBJECT) this.#pushLogprobs(value);
      else this.#keep(key, value);
    }
  }

  into(parts: Buffer[]): void {
    const members = new Map<string, Written>();
    members.set('index', Buffer.from(String(this.index)));
    members.set('message', this.#message);
    const lists = this.#logprobs;
    if (lists.size > 0) members.set('logprobs', { into: (to) => objectInto(to, lists) });
    members.set('finish_reason', this.#members.get('finish_reason') ?? NULL);
    for (const [key, value] of this.#members) if (!members.has(key)) members.set(key, value);
    objectInto(parts, members);
  }

  #keep(key: string, value: Buffer): void {
    if (!this.#members.has(key)) {
      checkRoom(this.#members, 'members');
      this.budget.hold();
    }
    this.#members.set(key, ownBytes(value));
  }

  #pushLogprobs(logprobs: Buffer): void {
    for (const [key, items] of membersOf(logprobs)) {
      if (items[0] !== OPEN_ARRAY) continue;
      let list = this.#logprobs.get(key);
      if (list === undefined) {
        checkRoom(this.#logprobs, 'members');
        this.budget.hold();
        this.#logprobs.set(key, (list = new JoinedList()));
      }
      list.add(items);
    }
  }
}
