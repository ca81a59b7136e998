import type { JsonDocument } from '../../common/json/json-document.js';
import { isEmptyValue, isNothing } from '../../common/json/raw-value.js';
import type { SseEvent } from '../../common/sse/sse-event.js';

/** What one event of a stream brings, as bits: an event may bring several things, or nothing. */
export const Brings = {
  nothing: 0,
  /** Text of the answer. */
  text: 1,
  reasoning: 2,
  /** Tool or function calls. */
  toolCalls: 4,
  /** A refusal, audio, content that is no plain text: part of the answer, and not to be continued by another. */
  other: 8,
  finishReason: 16,
  error: 32,
  /** Data that is no JSON object, such as `[DONE]`. */
  unreadable: 64,
} as const;

/** What a client would miss: everything but errors, which are no part of an answer. */
export const CONTENT = Brings.text | Brings.reasoning | Brings.toolCalls | Brings.other;
export const MEANINGFUL = CONTENT | Brings.finishReason | Brings.unreadable;

const REASONING_KEYS = ['reasoning_content', 'reasoning', 'reasoning_details'] as const;
const TOOL_KEYS = ['tool_calls', 'function_call'] as const;
const OTHER_KEYS = ['refusal', 'audio'] as const;
const QUOTE = 34;

/** Comments, roles, empty deltas and chunks without choices bring nothing. */
export function meaningOf(event: SseEvent): number {
  const { payload } = event;
  if (payload === undefined || payload.length === 0) return Brings.nothing;
  const chunk = event.json;
  if (chunk === undefined) return Brings.unreadable;
  let brings: number = isNothing(chunk.raw('error')) ? Brings.nothing : Brings.error;
  const choices = chunk.array('choices');
  for (let i = 0; i < (choices?.length ?? 0); i++) {
    const choice = choices?.object(i);
    if (choice !== undefined) brings |= meaningOfChoice(choice);
  }
  return brings;
}

/** Told before anything else was: the provider has no answer, only an error. */
export function isErrorEvent(brings: number): boolean {
  // Some say it beside a choice that is empty but for the finish reason "error".
  return (brings & Brings.error) !== 0 && (brings & CONTENT) === 0;
}

function meaningOfChoice(choice: JsonDocument): number {
  let brings: number = isEmptyValue(choice.raw('finish_reason')) ? Brings.nothing : Brings.finishReason;
  if (!isEmptyValue(choice.raw('text'))) brings |= Brings.text;
  // Some providers end with, or send only, a whole message instead of a delta.
  const delta = choice.object('delta') ?? choice.object('message');
  if (delta === undefined) return brings;
  const content = delta.raw('content');
  if (!isEmptyValue(content)) brings |= content?.[0] === QUOTE ? Brings.text : Brings.other;
  if (holdsAny(delta, REASONING_KEYS)) brings |= Brings.reasoning;
  if (holdsAny(delta, TOOL_KEYS)) brings |= Brings.toolCalls;
  if (holdsAny(delta, OTHER_KEYS)) brings |= Brings.other;
  return brings;
}

function holdsAny(delta: JsonDocument, keys: readonly string[]): boolean {
  for (const key of keys) if (!isEmptyValue(delta.raw(key))) return true;
  return false;
}
