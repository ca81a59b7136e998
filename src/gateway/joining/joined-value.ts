import { ownBytes } from '../../common/bytes/own-bytes.js';
import { OPEN_ARRAY, OPEN_OBJECT, QUOTE } from '../../common/json/json-bytes.js';
import { isNothing } from '../../common/json/raw-value.js';
import type { JoinBudget } from './join-budget.js';
import { JoinedList } from './joined-list.js';
import { JoinedText } from './joined-text.js';
import { membersOf } from './json-members.js';
import { objectInto, writeInto } from './json-written.js';

/** Strings that name something: they come whole, perhaps several times. Every other string of a delta is a piece. */
export const NAMES: ReadonlySet<string> = new Set(['role', 'id', 'name', 'type', 'format', 'signature']);

/** Deeper values are not joined but replaced: hostile nesting must not use up the stack. */
const DEPTH_LIMIT = 32;

/**
 * A value made of pieces: texts are joined, names kept, numbers replaced, lists appended, objects merged by these same rules. As
 * long as there is one piece it is only the bytes of that; nothing is made of values that nobody merges.
 */
export class JoinedValue {
  #held: Buffer | JoinedText | JoinedList | JoinedFields;

  constructor(raw: Buffer) {
    this.#held = ownBytes(raw);
  }

  /** @throws StreamLimitError where what is merged is too much */
  add(key: string, raw: Buffer, depth: number, budget: JoinBudget): void {
    if (isNothing(raw)) return;
    const first = raw[0];
    if (first === QUOTE) this.#addText(key, raw);
    else if (first === OPEN_ARRAY) this.#addList(raw);
    else if (first === OPEN_OBJECT && depth < DEPTH_LIMIT) this.#merge(raw, depth, budget);
    else this.#held = ownBytes(raw);
  }

  into(parts: Buffer[]): void {
    writeInto(parts, this.#held);
  }

  #addText(key: string, raw: Buffer): void {
    const held = this.#held;
    if (held instanceof JoinedText) held.add(raw);
    else if (!Buffer.isBuffer(held) || held[0] !== QUOTE || held.length === 2) this.#held = ownBytes(raw);
    else if (!NAMES.has(key)) {
      this.#held = new JoinedText();
      this.#held.add(held);
      this.#held.add(raw);
    }
  }

  #addList(raw: Buffer): void {
    const held = this.#held;
    if (held instanceof JoinedList) held.add(raw);
    else if (!Buffer.isBuffer(held) || held[0] !== OPEN_ARRAY) this.#held = ownBytes(raw);
    else {
      this.#held = new JoinedList();
      this.#held.add(held);
      this.#held.add(raw);
    }
  }

  #merge(raw: Buffer, depth: number, budget: JoinBudget): void {
    const held = this.#held;
    if (held instanceof JoinedFields) held.merge(raw, depth + 1);
    else if (!Buffer.isBuffer(held) || held[0] !== OPEN_OBJECT) this.#held = ownBytes(raw);
    else {
      const fields = new JoinedFields(budget);
      fields.merge(held, depth + 1);
      fields.merge(raw, depth + 1);
      this.#held = fields;
    }
  }
}

/** The members of an object made of pieces. A `__proto__` among them is a plain key. */
export class JoinedFields {
  readonly #members = new Map<string, JoinedValue>();

  constructor(private readonly budget: JoinBudget) {}

  /** `raw`: the bytes of an object. @throws StreamLimitError */
  merge(raw: Buffer, depth: number): void {
    this.budget.walk(raw.length);
    for (const [key, value] of membersOf(raw)) this.add(key, value, depth);
  }

  /** @throws StreamLimitError */
  add(key: string, raw: Buffer, depth = 0): void {
    const present = this.#members.get(key);
    if (present !== undefined) {
      present.add(key, raw, depth, this.budget);
      return;
    }
    this.budget.hold();
    this.#members.set(key, new JoinedValue(raw));
  }

  get(key: string): JoinedValue | undefined {
    return this.#members.get(key);
  }

  [Symbol.iterator](): IterableIterator<[string, JoinedValue]> {
    return this.#members.entries();
  }

  into(parts: Buffer[]): void {
    objectInto(parts, this.#members);
  }
}
