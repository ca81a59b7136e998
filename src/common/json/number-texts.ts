/** In the language since V8 11.4 (Node 22), not yet in the type library. */
const rawJson = JSON as unknown as { rawJSON(text: string): object };

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** By the array or object that holds the number; both go together. */
const texts = new WeakMap<object, Map<string, string>>();

/** How a number is written, where JSON can write it so and JavaScript would write it otherwise: `1.0`, `1e5`, `-0`. */
export function oddNumberText(value: unknown, source: string | undefined): string | undefined {
  if (source === undefined || (typeof value !== 'number' && typeof value !== 'bigint')) return undefined;
  if (typeof value === 'number' && !Number.isFinite(value)) return undefined;
  return String(value) !== source && JSON_NUMBER.test(source) ? source : undefined;
}

/** Keeps how a member of an array or object of the configuration is written. The value itself stays a plain number. */
export function keepNumberText(holder: object, key: string | number, text: string): void {
  const known = texts.get(holder) ?? new Map<string, string>();
  texts.set(holder, known.set(String(key), text));
}

export function numberTextOf(holder: object, key: string | number): string | undefined {
  return texts.get(holder)?.get(String(key));
}

/** A member as the bytes of its JSON, its numbers as they are written; undefined for what JSON cannot hold. */
export function encodeMember(holder: object, key: string): Buffer | undefined {
  const written = numberTextOf(holder, key);
  if (written !== undefined) return Buffer.from(written);
  const text = JSON.stringify((holder as Record<string, unknown>)[key], asWritten) as string | undefined;
  return text === undefined ? undefined : Buffer.from(text);
}

function asWritten(this: object, key: string, value: unknown): unknown {
  const written = numberTextOf(this, key);
  if (written !== undefined) return rawJson.rawJSON(written);
  return typeof value === 'bigint' ? rawJson.rawJSON(value.toString()) : value;
}
