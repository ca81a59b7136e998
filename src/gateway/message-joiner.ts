import type { JsonDocument } from '../common/json/json-document.js';
import { checkRoom } from '../common/sse/stream-limit.js';
import { accumulate, blank, NAMES, type Fields } from './accumulate.js';
import { ToolCallJoiner } from './tool-call-joiner.js';
import { UnreadableError } from './unreadable.js';

/**
 * The message that the deltas of one choice make: texts are joined, lists appended, tool calls merged by their index.
 * Owns the pieces until `result`. Its objects have no prototype, so that no key of an answer is special.
 */
export class MessageJoiner {
  readonly #texts = new Map<string, string[]>();
  readonly #lists = new Map<string, unknown[]>();
  readonly #others: Fields = blank();
  readonly #toolCalls = new ToolCallJoiner();
  /** Keys in order of appearance. */
  readonly #keys = new Set<string>(['role', 'content']);

  push(delta: JsonDocument): void {
    for (const key of delta.keys()) {
      const value = delta.get(key);
      if (value === undefined) throw new UnreadableError();
      if (value === null) continue;
      if (!this.#keys.has(key)) {
        checkRoom(this.#keys, 'members');
        this.#keys.add(key);
      }
      if (key === 'tool_calls' && Array.isArray(value)) this.#toolCalls.push(value);
      else if (typeof value === 'string' && !NAMES.has(key)) pieces(this.#texts, key).push(value);
      else if (Array.isArray(value)) append(pieces(this.#lists, key), value);
      else accumulate(this.#others, key, value);
    }
  }

  result(): Fields {
    const message: Fields = blank();
    const toolCalls = this.#toolCalls.result();
    for (const key of this.#keys) {
      if (key === 'tool_calls' && toolCalls.length > 0) message[key] = toolCalls;
      else if (key === 'content') message[key] = this.#content(toolCalls.length > 0);
      else if (key !== 'tool_calls')
        message[key] = this.#lists.get(key) ?? this.#text(key) ?? this.#others[key];
    }
    message['role'] ??= 'assistant';
    return message;
  }

  #text(key: string): string | undefined {
    return this.#texts.get(key)?.join('');
  }

  /** Null where the message says what it says otherwise. */
  #content(hasToolCalls: boolean): unknown {
    const text = this.#text('content') ?? '';
    const parts = this.#lists.get('content');
    if (parts !== undefined) return text === '' ? parts : [...parts, { type: 'text', text }];
    const otherwise = hasToolCalls || this.#keys.has('function_call') || this.#text('refusal');
    return text === '' && otherwise ? null : text;
  }
}

/** Not `push(...items)`: a long list would not fit on the stack. */
function append(list: unknown[], items: readonly unknown[]): void {
  for (const item of items) list.push(item);
}

function pieces<T>(map: Map<string, T[]>, key: string): T[] {
  let list = map.get(key);
  if (list === undefined) map.set(key, (list = []));
  return list;
}
