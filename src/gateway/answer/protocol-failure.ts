import type { JsonDocument } from '../../common/json/json-document.js';
import type { Operation } from '../../contracts/operation.js';

/** How an answer with status 200 says that it is a failure, by protocol; null where it has no way of its own. */
export function failureOf({ protocol }: Operation): ((answer: JsonDocument) => boolean) | null {
  if (protocol === 'messages') return (answer) => answer.string('type') === 'error';
  return protocol === 'responses' ? (answer) => answer.string('status') === 'failed' : null;
}
