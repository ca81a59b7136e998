import { OPEN_ARRAY, OPEN_OBJECT, QUOTE } from '../common/json/json-bytes.js';
import { isEmptyValue } from '../common/json/raw-value.js';

/** A part of an event that is no JSON, or not what stands there in the protocol: what it says is not known. */
export class UnreadableError extends Error {
  constructor() {
    super('an event of the stream cannot be read');
    this.name = 'UnreadableError';
  }
}

/** @throws UnreadableError where there is something, but nothing that could be opened */
export function readable<T>(opened: T | undefined, raw: Buffer | undefined): T | undefined {
  if (opened === undefined && !isEmptyValue(raw)) throw new UnreadableError();
  return opened;
}

/** @throws UnreadableError where a value that is taken over as it is is broken inside */
export function checkWhole(raw: Buffer): void {
  const first = raw[0];
  // Of numbers and words the scan of the event has told already.
  if (first !== QUOTE && first !== OPEN_ARRAY && first !== OPEN_OBJECT) return;
  try {
    JSON.parse(raw.toString('utf8'));
  } catch {
    // V8's message quotes the text, so it goes nowhere.
    throw new UnreadableError();
  }
}
