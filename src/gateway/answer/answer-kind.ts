import { mediaType } from '../../common/http/media-type.js';
import { headerValue, type UpstreamHeaders } from '../../common/http/response-headers.js';
import type { AnswerKind } from './sniffing.reader.js';

/** What an answer is by its content type; null where it names none. */
export function kindByContentType(headers: UpstreamHeaders): AnswerKind | null {
  const type = mediaType(headerValue(headers, 'content-type'));
  if (type === '') return null;
  if (type === 'text/event-stream') return 'sse';
  if (type === 'application/json' || type === 'text/json' || type.endsWith('+json')) return 'json';
  return 'other';
}
