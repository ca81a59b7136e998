/** What of a message makes the history; all else may change between turns. Sorted. */
export const COVERED = ['content', 'name', 'role', 'tool_call_id', 'tool_calls'] as const;
/** Clients move it from message to message between turns; left out at any depth. */
export const MOVED = 'cache_control';

/**
 * The canonical text of one message: covered fields only, keys sorted. Two spellings of one message give
 * one text. Bytes that are no JSON object stand for themselves.
 */
export function canonOf(raw: Buffer): string {
  const bytes = raw.toString('utf8');
  try {
    const message: unknown = JSON.parse(bytes);
    if (typeof message !== 'object' || message === null || Array.isArray(message)) return bytes;
    const fields = message as Readonly<Record<string, unknown>>;
    let text = '';
    // Own keys only: a `__proto__` in the message must not lend it fields (JSON.parse makes it a plain own key).
    for (const key of COVERED)
      if (Object.hasOwn(fields, key)) text += `${text && ','}"${key}":${sorted(fields[key])}`;
    return `{${text}}`;
  } catch {
    // Broken inside, or nested too deeply for us: the provider's to judge, still a part of the history.
    return bytes;
  }
}

/** The canonical text of any JSON value, by the same rules; bytes that are no JSON stand for themselves. */
export function canonOfValue(raw: Buffer): string {
  const bytes = raw.toString('utf8');
  try {
    return sorted(JSON.parse(bytes));
  } catch {
    // Broken inside, or nested too deeply for us.
    return bytes;
  }
}

function sorted(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(sorted).join(',')}]`;
  const fields = value as Readonly<Record<string, unknown>>;
  let text = '';
  for (const key of Object.keys(fields).sort()) {
    if (key === MOVED) continue;
    text += `${text && ','}${JSON.stringify(key)}:${sorted(fields[key])}`;
  }
  return `{${text}}`;
}
