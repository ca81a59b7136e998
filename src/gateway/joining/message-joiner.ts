import { OPEN_ARRAY, QUOTE } from '../../common/json/json-bytes.js';
import { isEmptyValue, isNothing } from '../../common/json/raw-value.js';
import { checkRoom } from '../../common/sse/stream-limit.js';
import type { JoinBudget } from './join-budget.js';
import { JoinedList } from './joined-list.js';
import { JoinedText } from './joined-text.js';
import { JoinedFields, NAMES } from './joined-value.js';
import { membersOf } from './json-members.js';
import { NULL, objectInto, type Written } from './json-written.js';
import { ToolCallJoiner } from './tool-call-joiner.js';
import { UnreadableError } from './unreadable.js';

const ASSISTANT = Buffer.from('"assistant"');
const NO_TEXT = Buffer.from('""');
const TEXT_TYPE = Buffer.from('"text"');

/**
 * The message that the deltas of one choice make: texts are joined, lists appended, tool calls merged by their index.
 * Owns the pieces until they are written.
 */
export class MessageJoiner {
  readonly #texts = new Map<string, JoinedText>();
  readonly #lists = new Map<string, JoinedList>();
  readonly #others: JoinedFields;
  readonly #toolCalls: ToolCallJoiner;
  /** Keys in order of appearance. */
  readonly #keys = new Set<string>(['role', 'content']);

  #silent = true;

  constructor(private readonly budget: JoinBudget) {
    this.#others = new JoinedFields(budget);
    this.#toolCalls = new ToolCallJoiner(budget);
  }

  /** Nothing was said yet but who speaks. */
  get silent(): boolean {
    return this.#silent;
  }

  /** `delta`: the bytes of an object. @throws StreamLimitError where they are too many members to be held, UnreadableError */
  push(delta: Buffer): void {
    for (const [key, value] of membersOf(delta)) {
      if (isNothing(value)) continue;
      if (!this.#keys.has(key)) {
        checkRoom(this.#keys, 'members');
        this.budget.hold();
        this.#keys.add(key);
      }
      const first = value[0];
      if (!NAMES.has(key) && !isEmptyValue(value)) this.#silent = false;
      if (first !== OPEN_ARRAY && (key === 'tool_calls' || (key === 'content' && first !== QUOTE)))
        throw new UnreadableError();
      if (first === OPEN_ARRAY && key === 'tool_calls') this.#toolCalls.push(value);
      else if (first === OPEN_ARRAY) listOf(this.#lists, key).add(value);
      else if (first === QUOTE && !NAMES.has(key)) textOf(this.#texts, key).add(value);
      else this.#others.add(key, value);
    }
  }

  into(parts: Buffer[]): void {
    const message = new Map<string, Written>();
    for (const key of this.#keys) {
      const value = this.#valueOf(key);
      if (value !== undefined) message.set(key, value);
    }
    objectInto(parts, message);
  }

  #valueOf(key: string): Written | undefined {
    if (key === 'content') return this.#content();
    if (key === 'tool_calls') return this.#toolCalls.empty ? undefined : this.#toolCalls;
    const value = this.#lists.get(key) ?? this.#texts.get(key) ?? this.#others.get(key);
    return value ?? (key === 'role' ? ASSISTANT : undefined);
  }

  /** Null where the message says what it says otherwise. */
  #content(): Written {
    const text = this.#filled('content');
    const parts = this.#lists.get('content');
    if (parts !== undefined) return text === undefined ? parts : withText(parts, text);
    const otherwise =
      !this.#toolCalls.empty || this.#keys.has('function_call') || this.#filled('refusal') !== undefined;
    return text ?? (otherwise ? NULL : NO_TEXT);
  }

  /** A text with something in it. */
  #filled(key: string): JoinedText | undefined {
    const text = this.#texts.get(key);
    return text?.empty === false ? text : undefined;
  }
}

function withText(list: JoinedList, text: JoinedText): Written {
  const item: Written = {
    into: (parts) =>
      objectInto(parts, [
        ['type', TEXT_TYPE],
        ['text', text],
      ]),
  };
  return { into: (parts) => list.intoWith(parts, item) };
}

function textOf(texts: Map<string, JoinedText>, key: string): JoinedText {
  let text = texts.get(key);
  if (text === undefined) texts.set(key, (text = new JoinedText()));
  return text;
}

function listOf(lists: Map<string, JoinedList>, key: string): JoinedList {
  let list = lists.get(key);
  if (list === undefined) lists.set(key, (list = new JoinedList()));
  return list;
}
