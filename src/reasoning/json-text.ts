import { encodeJson } from '../common/json/json-encode.js';

const QUOTE = 34;
const LESS_THAN = 60;
/** `<` as many encoders write it: `\u003c`, `\u003C`. */
const ESCAPED_LESS_THAN = Buffer.from('\\u003');

export const EMPTY_STRING = Buffer.from('""');

/** The bytes of a JSON string, quotes included. */
export function jsonText(text: string): Buffer {
  return encodeJson(text) as Buffer;
}

export function isJsonString(raw: Buffer | undefined): raw is Buffer {
  return raw !== undefined && raw[0] === QUOTE;
}

/** Absent or `null`. */
export function isNothing(raw: Buffer | undefined): boolean {
  return raw === undefined || (raw.length === 4 && raw[0] === 110);
}

/** Absent, `null`, `""`, or an array or object with nothing in it. */
export function isEmptyValue(raw: Buffer | undefined): boolean {
  if (raw === undefined || isNothing(raw)) return true;
  return raw.length === 2 && (raw[0] === QUOTE || raw[0] === 91 || raw[0] === 123);
}

/** Whether the string's bytes can hold the beginning of a tag. */
export function mayHoldTag(raw: Buffer): boolean {
  return raw.includes(LESS_THAN) || raw.includes(ESCAPED_LESS_THAN);
}

/** One JSON string behind the other, without decoding either. */
export function joinJsonTexts(one: Buffer, other: Buffer): Buffer {
  return Buffer.concat([one.subarray(0, -1), other.subarray(1)]);
}
