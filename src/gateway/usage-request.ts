import { isNothing } from '../common/json/raw-value.js';
import type { JsonDocument } from '../common/json/json-document.js';

/**
 * Asks for the usage of a stream; other `stream_options` stay. False where nobody needs to: it is no stream, or it was
 * asked for already. What is no object there is the provider's business.
 */
export function askForUsage(body: JsonDocument): boolean {
  if (!body.isTrue('stream')) return false;
  const options = body.object('stream_options');
  if (options === undefined) {
    if (!isNothing(body.raw('stream_options'))) return false;
    body.set('stream_options', { include_usage: true });
    return true;
  }
  if (options.isTrue('include_usage')) return false;
  options.set('include_usage', true);
  return true;
}
