import type { JsonDocument } from '../common/json/json-document.js';
import { CHOICE_LIMIT, StreamLimitError } from '../common/sse/stream-limit.js';
import { append, TagScanner, type TextPiece } from '../common/text/tag-scanner.js';
import { isJsonString, isNothing } from '../common/json/raw-value.js';
import { joinJsonTexts, jsonText, mayHoldTag } from './json-text.js';

const REASONING = 'reasoning_content';

/**
 * Takes the thoughts out of each `choices[*].message.content` of a whole answer.
 * @throws StreamLimitError where it has too many choices: each one that is opened costs kilobytes
 */
export function splitAnswer(answer: JsonDocument, strip: boolean): void {
  const choices = answer.array('choices');
  if (choices !== undefined && choices.length > CHOICE_LIMIT) {
    const reason = `the answer has more than ${CHOICE_LIMIT} choices`;
    throw new StreamLimitError(reason, reason, true);
  }
  for (let i = 0; i < (choices?.length ?? 0); i++) {
    const message = choices?.object(i)?.object('message');
    if (message !== undefined) splitMessage(message, strip);
  }
}

function splitMessage(message: JsonDocument, strip: boolean): void {
  const raw = message.raw('content');
  if (!isJsonString(raw) || !mayHoldTag(raw)) return;
  const content = message.string('content');
  if (content === undefined) return;
  const scanner = new TagScanner();
  const pieces = scanner.push(content);
  for (const piece of scanner.flush()) append(pieces, piece.thought, piece.text);
  const text = join(pieces, false);
  if (text === content) return;
  const thought = strip ? '' : join(pieces, true);
  if (thought !== '') {
    const existing = message.raw(REASONING);
    // A value that is no text can be neither appended to nor replaced: the answer stays as it is.
    if (!isNothing(existing) && !isJsonString(existing)) return;
    const ours = jsonText(thought);
    message.setRaw(REASONING, isJsonString(existing) ? joinJsonTexts(existing, ours) : ours);
  }
  message.set('content', text);
}

function join(pieces: readonly TextPiece[], thought: boolean): string {
  let text = '';
  for (const piece of pieces) if (piece.thought === thought) text += piece.text;
  return text;
}
