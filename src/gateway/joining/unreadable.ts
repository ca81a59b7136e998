import type { OPEN_ARRAY, OPEN_OBJECT } from '../../common/json/json-bytes.js';
import { isEmptyValue } from '../../common/json/raw-value.js';

/** A part of an event that is no JSON, or not what stands there in the protocol: what it says is not known. */
export class UnreadableError extends Error {
  constructor() {
    super('an event of the stream cannot be read');
    this.name = 'UnreadableError';
  }
}

/**
 * The object or list that should stand there; undefined where there is nothing.
 * @throws UnreadableError where there is something else
 */
export function readable(
  raw: Buffer | undefined,
  opener: typeof OPEN_ARRAY | typeof OPEN_OBJECT,
): Buffer | undefined {
  if (raw?.[0] === opener) return raw;
  if (!isEmptyValue(raw)) throw new UnreadableError();
  return undefined;
}
