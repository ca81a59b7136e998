import type { JsonDocument } from '../common/json/json-document.js';

const BYTES_PER_TOKEN = 4;
/** Where a request does not say how long its answer may be. */
const DEFAULT_ANSWER_TOKENS = 1000;
/** The names of that limit, the one that providers obey first. */
const LIMIT_KEYS = ['max_completion_tokens', 'max_tokens', 'max_output_tokens'] as const;
/** No model's answer is longer. Trap: with what a client makes up it could close a quota that others share. */
const MAX_ANSWER_TOKENS = 1_000_000;

/** Tokens of a text of which only the length is known. */
export function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** What a request may use, before it is sent. */
export function tokensToReserve(body: JsonDocument): number {
  return tokensOfBytes(body.byteLength) + answerLimitOf(body);
}

function answerLimitOf(body: JsonDocument): number {
  for (const key of LIMIT_KEYS) {
    const limit = body.number(key);
    if (limit !== undefined && limit >= 0) return Math.min(Math.ceil(limit), MAX_ANSWER_TOKENS);
  }
  return DEFAULT_ANSWER_TOKENS;
}
