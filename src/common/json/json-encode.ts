const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');
const NULL = Buffer.from('null');

/** In the language since V8 11.4 (Node 22), not yet in the type library. */
const rawJson = JSON as unknown as { rawJSON(text: string): object };

/**
 * `JSON.stringify` as bytes, with a bigint printed by its digits. Undefined for what JSON cannot hold (undefined, a
 * function, a symbol). The bytes may be shared: never write into them.
 * @throws TypeError where the value is circular
 */
export function encodeJson(value: unknown): Buffer | undefined {
  if (value === true) return TRUE;
  if (value === false) return FALSE;
  if (value === null) return NULL;
  const text = stringify(value);
  return text === undefined ? undefined : Buffer.from(text, 'utf8');
}

function stringify(value: unknown): string | undefined {
  if (typeof value === 'bigint') return value.toString();
  try {
    return JSON.stringify(value) as string | undefined;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    // A bigint somewhere inside, or a circle, which throws again.
    return JSON.stringify(value, (_key, item: unknown) =>
      typeof item === 'bigint' ? rawJson.rawJSON(item.toString()) : item,
    );
  }
}
