import { checkRoom } from '../common/sse/stream-limit.js';
import { accumulate, blank, isFields, type Fields } from './accumulate.js';

interface ToolCall {
  readonly fields: Fields;
  id: string;
  name: string | undefined;
  readonly arguments: string[];
  /** Members of `function` that are not ours to join. */
  readonly functionFields: Fields;
}

/** Of a piece: joined by rules of their own. */
const OWN_KEYS: ReadonlySet<string> = new Set(['index', 'id', 'function']);

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/**
 * Merges the pieces of tool calls. A piece belongs to the call of its `index`; without one to the call of its `id`, a
 * new id being a new call, else to the last one. Some providers give every call the index 0: another id together with
 * a name begins a new call there.
 */
export class ToolCallJoiner {
  readonly #calls: { readonly place: number; readonly call: ToolCall }[] = [];
  readonly #byIndex = new Map<number, ToolCall>();

  push(pieces: readonly unknown[]): void {
    for (const piece of pieces) {
      if (isFields(piece)) this.#pushPiece(piece);
    }
  }

  /** In order of their indexes, without them: a message's calls have none. */
  result(): Fields[] {
    const sorted = [...this.#calls].sort((one, other) => one.place - other.place);
    return sorted.map(({ call }) => shapeOf(call));
  }

  #pushPiece(piece: Fields): void {
    const details = isFields(piece['function']) ? piece['function'] : undefined;
    const call = this.#callOf(piece, text(details?.['name']));
    call.id ||= text(piece['id']);
    for (const [key, value] of Object.entries(piece)) {
      if (!OWN_KEYS.has(key) && value !== null && value !== '') accumulate(call.fields, key, value);
    }
    if (details === undefined) return;
    call.name = call.name || text(details['name']);
    const args = details['arguments'];
    if (args !== undefined && args !== null)
      call.arguments.push(typeof args === 'string' ? args : JSON.stringify(args));
    for (const [key, value] of Object.entries(details)) {
      if (key !== 'name' && key !== 'arguments') accumulate(call.functionFields, key, value);
    }
  }

  #callOf(piece: Fields, name: string): ToolCall {
    const id = text(piece['id']);
    const index = typeof piece['index'] === 'number' ? piece['index'] : undefined;
    const there = index === undefined ? this.#without(id) : this.#byIndex.get(index);
    if (there !== undefined && !(id !== '' && there.id !== '' && there.id !== id && name !== ''))
      return there;
    checkRoom({ size: this.#calls.length }, 'tool calls');
    const call: ToolCall = {
      fields: blank(),
      id: '',
      name: undefined,
      arguments: [],
      functionFields: blank(),
    };
    const place = index ?? this.#calls.reduce((last, other) => Math.max(last, other.place + 1), 0);
    this.#calls.push({ place, call });
    this.#byIndex.set(place, call);
    return call;
  }

  #without(id: string): ToolCall | undefined {
    if (id === '') return this.#calls.at(-1)?.call;
    return this.#calls.find(({ call }) => call.id === id)?.call;
  }
}

function shapeOf({ id, name, arguments: pieces, fields, functionFields }: ToolCall): Fields {
  const shape = blank();
  if (id !== '') shape['id'] = id;
  if (name !== undefined) {
    shape['type'] = fields['type'] ?? 'function';
    shape['function'] = Object.assign(blank(), { name, arguments: pieces.join('') }, functionFields);
  }
  return Object.assign(shape, fields);
}
