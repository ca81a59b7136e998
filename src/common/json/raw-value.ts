import { OPEN_ARRAY, OPEN_OBJECT, QUOTE } from './json-bytes.js';

/** The bytes of a JSON string, quotes included. */
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
  return raw.length === 2 && (raw[0] === QUOTE || raw[0] === OPEN_ARRAY || raw[0] === OPEN_OBJECT);
}

/** What a JSON string that does not decode suffers from, in words of ours: nothing of the text is in them. */
export function stringFault(raw: Buffer): string {
  const at = raw.findIndex((byte) => byte < 0x20);
  if (at < 0) return 'holds an escape that JSON does not know';
  const code = (raw[at] as number).toString(16).padStart(2, '0');
  return `holds a control character (0x${code}) that is not escaped, ${at - 1} bytes into the text`;
}
