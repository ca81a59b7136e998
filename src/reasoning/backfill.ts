import { OPEN_ARRAY, OPEN_OBJECT, QUOTE } from '../common/json/json-bytes.js';
import type { JsonIndex } from '../common/json/json-index.js';
import { JsonRewrite } from '../common/json/json-rewrite.js';
import { EMPTY_STRING, jsonText } from './json-text.js';

const COMMA = Buffer.from(',');
const LETTER_N = 0x6e;

/**
 * Writes one history with the reasoning field of its assistant messages filled in. Looks at each message once and
 * keeps nothing of it: a request may hold a million of them. Lives for one history.
 */
export class Backfill {
  readonly #label: Buffer;
  #rewrite: JsonRewrite | null = null;

  constructor(
    private readonly messages: JsonIndex,
    private readonly field: string,
    private readonly emptyOk: boolean,
  ) {
    this.#label = Buffer.from(`${JSON.stringify(field)}:`);
  }

  /** The pieces of the whole array; null where no message lacks anything. */
  run(): readonly Buffer[] | null {
    const { messages } = this;
    for (let i = 0; i < messages.count; i++) {
      const message = messages.nested(i, OPEN_OBJECT);
      if (message === undefined) continue;
      const role = last(message, 'role');
      if (role !== -1 && message.string(role) === 'assistant') this.#fill(message);
    }
    return this.#rewrite?.finish() ?? null;
  }

  #fill(message: JsonIndex): void {
    const present = last(message, this.field);
    if (isFilled(message, present)) return;
    const reasoning = last(message, 'reasoning');
    if (isFilled(message, reasoning)) {
      const rewrite = this.#place(message, present);
      rewrite.copy(message.valueStart(reasoning), message.valueEnd(reasoning));
      return;
    }
    const text = textOfDetails(message);
    if (text !== undefined) this.#place(message, present).add(text);
    else if (this.emptyOk && !isText(message, present)) this.#place(message, present).add(EMPTY_STRING);
  }

  /** Goes to where the field's value is to be written: in place of the one that is there, else behind all members. */
  #place(message: JsonIndex, present: number): JsonRewrite {
    const { source, start, end } = this.messages;
    const rewrite = (this.#rewrite ??= new JsonRewrite(source, start, end));
    if (present === -1) {
      rewrite.keep(message.valueEnd(message.count - 1));
      rewrite.add(COMMA);
      rewrite.add(this.#label);
      return rewrite;
    }
    this.#dropTwins(message, present, rewrite);
    rewrite.keep(message.valueStart(present));
    rewrite.skip(message.valueEnd(present));
    return rewrite;
  }

  /** Of a key that stands twice the last counts, and the others go when it is written. */
  #dropTwins(message: JsonIndex, present: number, rewrite: JsonRewrite): void {
    let twin = message.findLast(this.field, present);
    if (twin === -1) return;
    const twins: number[] = [];
    for (; twin !== -1; twin = message.findLast(this.field, twin)) twins.push(twin);
    for (const [dropped, slot] of twins.reverse().entries()) {
      // With a member before it that stays the comma before goes, else the one after.
      const first = dropped === slot;
      rewrite.keep(first ? message.itemStart(slot) : message.valueEnd(slot - 1));
      rewrite.skip(first ? message.itemStart(slot + 1) : message.valueEnd(slot));
    }
  }
}

const last = (message: JsonIndex, key: string): number => message.findLast(key, message.count);

function isText(message: JsonIndex, slot: number): boolean {
  return slot !== -1 && message.source.byteAt(message.valueStart(slot)) === QUOTE;
}

/** A JSON string with something in it. */
function isFilled(message: JsonIndex, slot: number): boolean {
  return isText(message, slot) && message.valueEnd(slot) - message.valueStart(slot) > EMPTY_STRING.length;
}

function textOfDetails(message: JsonIndex): Buffer | undefined {
  const slot = last(message, 'reasoning_details');
  const details = slot === -1 ? undefined : message.nested(slot, OPEN_ARRAY);
  if (details === undefined) return undefined;
  const texts: string[] = [];
  for (let i = 0; i < details.count; i++) {
    const text = textOf(details.nested(i, OPEN_OBJECT));
    if (text !== undefined) texts.push(text);
  }
  const joined = texts.join('\n');
  return joined === '' ? undefined : jsonText(joined);
}

function textOf(item: JsonIndex | undefined): string | undefined {
  const text = item === undefined ? -1 : last(item, 'text');
  if (item === undefined || text === -1) return undefined;
  const type = last(item, 'type');
  const wanted = type === -1 || isNull(item, type) || item.string(type) === 'reasoning.text';
  return wanted ? item.string(text) : undefined;
}

/** Of the words of JSON it alone begins so. */
function isNull(item: JsonIndex, slot: number): boolean {
  return item.source.byteAt(item.valueStart(slot)) === LETTER_N;
}
