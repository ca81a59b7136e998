import { OPEN_OBJECT, QUOTE } from '../../common/json/json-bytes.js';
import { decodeString } from '../../common/json/json-decode.js';
import { JsonEnd } from '../../common/json/json-end.js';
import { isNothing } from '../../common/json/raw-value.js';
import { checkRoom } from '../../common/sse/stream-limit.js';
import type { JoinBudget } from './join-budget.js';
import { JoinedText } from './joined-text.js';
import { JoinedFields } from './joined-value.js';
import { eachItem, indexOf, membersOf } from './json-members.js';
import { objectInto, type Written } from './json-written.js';

interface ToolCall {
  /** Its place among all calls in order of appearance. */
  readonly order: number;
  /** Where it stands in the message. */
  readonly place: number;
  readonly fields: JoinedFields;
  id: string;
  /** Empty where only the arguments of its function came. */
  name: string | undefined;
  /** What it calls, of whatever type. */
  called: string;
  readonly arguments: JoinedText;
  readonly argumentsEnd: JsonEnd;
  /** Members of `function` that are not ours to join. */
  readonly functionFields: JoinedFields;
}

/** Of a piece: joined by rules of their own. */
const OWN_KEYS: ReadonlySet<string> = new Set(['index', 'id', 'function']);
const OPEN = Buffer.from('[');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from(']');
const FUNCTION = Buffer.from('"function"');

const text = (raw: Buffer | undefined): string => (raw?.[0] === QUOTE ? (decodeString(raw) ?? '') : '');
const encoded = (value: string): Buffer => Buffer.from(JSON.stringify(value));

/**
 * Merges the pieces of tool calls. A piece belongs to the call of its `index`; without one to the call of its `id`, a
 * new id being a new call, else to the last one. Some providers give every call the index 0, or neither index nor id: there
 * another id together with a name, another name, or arguments that begin anew behind whole ones begin a new call.
 */
export class ToolCallJoiner {
  readonly #calls: ToolCall[] = [];
  readonly #byIndex = new Map<number, ToolCall>();
  /** Of several calls with one id the one that appeared first. */
  readonly #byId = new Map<string, ToolCall>();
  #nextPlace = 0;

  constructor(private readonly budget: JoinBudget) {}

  get empty(): boolean {
    return this.#calls.length === 0;
  }

  /** `pieces`: the bytes of a list. */
  push(pieces: Buffer): void {
    eachItem(pieces, (piece) => {
      if (piece[0] === OPEN_OBJECT) this.#pushPiece(membersOf(piece));
    });
  }

  /** In order of their indexes, without them: a message's calls have none. */
  into(parts: Buffer[]): void {
    const sorted = this.#calls.toSorted((one, other) => one.place - other.place);
    for (const [i, call] of sorted.entries()) {
      parts.push(i === 0 ? OPEN : COMMA);
      objectInto(parts, shapeOf(call));
    }
    parts.push(CLOSE);
  }

  #pushPiece(piece: ReadonlyMap<string, Buffer>): void {
    const told = piece.get('function');
    const details = told?.[0] === OPEN_OBJECT ? membersOf(told) : undefined;
    const id = text(piece.get('id'));
    const name = text(details?.get('name'));
    const custom = piece.get('custom');
    const called = name || (custom?.[0] === OPEN_OBJECT ? text(membersOf(custom).get('name')) : '');
    const call = this.#callOf(indexOf(piece.get('index')), id, called, details?.get('arguments'));
    if (call.id === '' && id !== '') this.#name(call, id);
    for (const [key, value] of piece) {
      if (!OWN_KEYS.has(key) && !isNothing(value) && !isEmptyText(value)) call.fields.add(key, value);
    }
    if (details === undefined) return;
    call.name = call.name || name;
    for (const [key, value] of details) {
      if (key === 'arguments') addArguments(call, value);
      else if (key !== 'name') call.functionFields.add(key, value);
    }
  }

  #callOf(index: number | undefined, id: string, called: string, given: Buffer | undefined): ToolCall {
    const there = index === undefined ? this.#without(id) : this.#byIndex.get(index);
    if (there !== undefined && !beginsAnew(there, id, called, given)) {
      there.called ||= called;
      return there;
    }
    checkRoom({ size: this.#calls.length }, 'tool calls');
    this.budget.hold();
    const call: ToolCall = {
      order: this.#calls.length,
      place: index ?? this.#nextPlace,
      fields: new JoinedFields(this.budget),
      id: '',
      name: undefined,
      called,
      arguments: new JoinedText(),
      argumentsEnd: new JsonEnd(),
      functionFields: new JoinedFields(this.budget),
    };
    this.#nextPlace = Math.max(this.#nextPlace, call.place + 1);
    this.#calls.push(call);
    this.#byIndex.set(call.place, call);
    return call;
  }

  #without(id: string): ToolCall | undefined {
    return id === '' ? this.#calls.at(-1) : this.#byId.get(id);
  }

  #name(call: ToolCall, id: string): void {
    call.id = id;
    const known = this.#byId.get(id);
    if (known === undefined || call.order < known.order) this.#byId.set(id, call);
  }
}

function isEmptyText(raw: Buffer): boolean {
  return raw[0] === QUOTE && raw.length === 2;
}

/** Trap: some repeat the name with each piece of the arguments, so a name alone tells nothing. */
function beginsAnew(there: ToolCall, id: string, called: string, given: Buffer | undefined): boolean {
  if (called === '' || (id !== '' && there.id === id)) return false;
  if (id !== '' && there.id !== '') return true;
  if (there.called === '') return false;
  return there.called !== called || (there.argumentsEnd.reached && beginsObject(given));
}

function beginsObject(given: Buffer | undefined): boolean {
  return given?.[0] === OPEN_OBJECT || text(given).trimStart().startsWith('{');
}

function addArguments(call: ToolCall, value: Buffer): void {
  if (value[0] === QUOTE) {
    call.arguments.add(value);
    call.argumentsEnd.push(Buffer.from(text(value)));
  } else if (!isNothing(value)) {
    call.arguments.addJson(value);
    call.argumentsEnd.push(value);
  }
}

function shapeOf(call: ToolCall): Map<string, Written> {
  const shape = new Map<string, Written>();
  if (call.id !== '') shape.set('id', encoded(call.id));
  const { name } = call;
  if (name !== undefined) {
    shape.set('type', FUNCTION);
    const members: [string, Written][] = [
      ['name', encoded(name)],
      ['arguments', call.arguments],
      ...call.functionFields,
    ];
    shape.set('function', { into: (parts) => objectInto(parts, members) });
  }
  for (const [key, value] of call.fields) shape.set(key, value);
  return shape;
}
