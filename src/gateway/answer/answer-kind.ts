import { headerValue, type UpstreamHeaders } from '../../common/http/response-headers.js';
import type { AnswerKind } from './sniffing.reader.js';

/** What an answer is by its content type; null where it names none. */
export function kindByContentType(headers: UpstreamHeaders): AnswerKind | null {
  const value = headerValue(headers, 'content-type');
  if (value === undefined) return null;
  const semicolon = value.indexOf(';');
  const type = (semicolon < 0 ? value : value.slice(0, semicolon)).trim().toLowerCase();
  if (type === '') return null;
  if (type === 'text/event-stream') return 'sse';
  if (type === 'application/json' || type.endsWith('+json')) return 'json';
  return 'other';
}
