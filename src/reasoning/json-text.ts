import { encodeJson } from '../common/json/json-encode.js';

const LESS_THAN = 60;
/** `<` as many encoders write it: `\u003c`, `\u003C`. */
const ESCAPED_LESS_THAN = Buffer.from('\\u003');

export const EMPTY_STRING = Buffer.from('""');

/** The bytes of a JSON string, quotes included. */
export function jsonText(text: string): Buffer {
  return encodeJson(text) as Buffer;
}

/** Whether the string's bytes can hold the beginning of a tag. */
export function mayHoldTag(raw: Buffer): boolean {
  return raw.includes(LESS_THAN) || raw.includes(ESCAPED_LESS_THAN);
}

/** One JSON string behind the other, without decoding either. */
export function joinJsonTexts(one: Buffer, other: Buffer): Buffer {
  return Buffer.concat([one.subarray(0, -1), other.subarray(1)]);
}
