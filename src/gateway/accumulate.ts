/** A JSON object without prototype: a `__proto__` in an answer is a plain key and reaches nothing. */
export type Fields = Record<string, unknown>;

export const blank = (): Fields => Object.create(null) as Fields;

/** Strings that name something: they come whole, perhaps several times. Every other string of a delta is a piece. */
export const NAMES: ReadonlySet<string> = new Set(['role', 'id', 'name', 'type', 'format', 'signature']);

/** Deeper values are not joined but replaced: hostile nesting must not use up the stack. */
const DEPTH_LIMIT = 32;

/** Adds a piece of a nested value to what is there: texts are joined, names kept, numbers replaced, lists appended. */
export function accumulate(target: Fields, key: string, value: unknown, depth = 0): void {
  const present = target[key];
  if (value === undefined || value === null) target[key] ??= value;
  else if (typeof value === 'string') target[key] = joined(key, present, value);
  else if (Array.isArray(value)) target[key] = Array.isArray(present) ? present.concat(value) : value;
  else if (typeof value === 'object' && depth < DEPTH_LIMIT) {
    const fields = isFields(present) ? present : blank();
    for (const [name, inner] of Object.entries(value)) accumulate(fields, name, inner, depth + 1);
    target[key] = fields;
  } else target[key] = value;
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function joined(key: string, present: unknown, piece: string): string {
  if (typeof present !== 'string' || present === '') return piece;
  return NAMES.has(key) ? present : present + piece;
}
