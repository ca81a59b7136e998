import { isPlainObject } from './plain-object.js';

/** Of objects and lists in each other; the YAML reader has the same bound. */
export const MAX_DEPTH = 100;
const QUOTE = 0x22;
const COLON = 0x3a;

/**
 * The value of a file that is plain JSON, or null where the YAML reader must look at it. JSON is YAML, but the YAML
 * reader takes a hundred times longer, and large files come from programs that write JSON. What JSON.parse would
 * silently lose (a key given twice, digits beyond 2^53) is left to the YAML reader.
 */
export function readPlainJson(text: string): { value: unknown } | null {
  if (!text.trimStart().startsWith('{')) return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const written = keysWritten(text);
  return written !== null && written === keysKept(value, 0) ? { value } : null;
}

/** Counts the keys of a valid JSON text; null when it holds a number of 16 digits or more. */
function keysWritten(text: string): number | null {
  let keys = 0;
  let digits = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 0x30 && code <= 0x39) {
      if (++digits >= 16) return null;
      continue;
    }
    digits = 0;
    if (code === QUOTE) i = endOfString(text, i);
    else if (code === COLON) keys++;
  }
  return keys;
}

function endOfString(text: string, start: number): number {
  let i = start + 1;
  while (i < text.length && text.charCodeAt(i) !== QUOTE) i += text[i] === '\\' ? 2 : 1;
  return i;
}

function keysKept(value: unknown, depth: number): number {
  if (depth > MAX_DEPTH) return NaN;
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + keysKept(item, depth + 1), 0);
  if (!isPlainObject(value)) return 0;
  let keys = 0;
  for (const key of Object.keys(value)) keys += 1 + keysKept(value[key], depth + 1);
  return keys;
}
