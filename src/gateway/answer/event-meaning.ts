import type { SseEvent } from '../../common/sse/sse-event.js';
import type { Operation } from '../../contracts/operation.js';
import { Brings, meaningOf } from './chunk-meaning.js';

/** Events of messages and responses that begin an answer without a word of it. */
const EMPTY: ReadonlySet<string> = new Set([
  'ping',
  'message_start',
  'content_block_start',
  'content_block_stop',
  'response.created',
  'response.queued',
  'response.in_progress',
  'response.output_item.added',
  'response.content_part.added',
  'response.reasoning_summary_part.added',
  'keepalive',
]);
const ERRORS: ReadonlySet<string> = new Set(['error', 'response.failed']);

/** What an event means for whether something of an answer has come, by the protocol; null where that is not known. */
export function meaningIn({ protocol }: Operation): ((event: SseEvent) => number) | null {
  if (protocol === 'chat-completions') return meaningOf;
  return protocol === 'messages' || protocol === 'responses' ? typedMeaning : null;
}

/** Of protocols whose events have a type: whatever is not known to be empty counts as a part of the answer. */
function typedMeaning(event: SseEvent): number {
  const { payload } = event;
  if (payload === undefined || payload.length === 0) return Brings.nothing;
  const type = event.json?.string('type');
  if (type === undefined) return Brings.unreadable;
  if (ERRORS.has(type)) return Brings.error;
  return EMPTY.has(type) ? Brings.nothing : Brings.other;
}
