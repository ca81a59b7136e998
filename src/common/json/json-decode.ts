import { QUOTE } from './json-bytes.js';

/** Undefined where the bytes are no JSON: what is wrong below the top level was never checked. */
export function decodeValue(raw: Buffer): unknown {
  if (raw[0] === QUOTE) return decodeString(raw);
  try {
    return JSON.parse(raw.toString('utf8'));
  } catch {
    // V8's message quotes the text, so it goes nowhere.
    return undefined;
  }
}

export function decodeString(raw: Buffer): string | undefined {
  try {
    const value: unknown = JSON.parse(raw.toString('utf8'));
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}
