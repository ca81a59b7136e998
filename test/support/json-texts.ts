import fc from 'fast-check';

/** A JSON value as text that nothing has normalised: a scalar's literal text, or a container of such. */
export type JsonNode = string | ObjectNode | ArrayNode;

export interface MemberNode {
  readonly key: string;
  /** The key as written, quotes and escapes included. */
  readonly keyText: string;
  value: JsonNode;
}

export interface ObjectNode {
  members: MemberNode[];
}

export interface ArrayNode {
  items: JsonNode[];
}

export const KEYS = ['model', 'a', 'b', 'é', '', '__proto__', 'constructor', '10', '2', 'q"\\', '🙂'];

const escapedKeys = new Map([
  ['model', '"mod\\u0065l"'],
  ['a', '"\\u0061"'],
  ['é', '"\\u00e9"'],
  ['🙂', '"\\ud83d\\ude42"'],
]);
const scalars = ['0', '-0', '1.0', '1e5', '1E-7', '12345678901234567890', '-1.50', 'true', 'false', 'null'];
const strings = [
  '""',
  '"x"',
  '"\\u00e9"',
  '"\\ud800"',
  '"a\\"b"',
  '"\\\\"',
  '"\\\\\\""',
  '"é🙂"',
  '"}{]["',
  '"\\/\\n"',
];

const key: fc.Arbitrary<Omit<MemberNode, 'value'>> = fc
  .tuple(fc.constantFrom(...KEYS), fc.boolean())
  .map(([name, escape]) => ({
    key: name,
    keyText: (escape && escapedKeys.get(name)) || JSON.stringify(name),
  }));
const longString = fc
  .tuple(fc.constantFrom('A', '\\\\', '\\"', 'é', 'word \\n'), fc.integer({ min: 1, max: 400 }))
  .map(([piece, times]) => `"${piece.repeat(times)}"`);

const { node, object } = fc.letrec<{ node: JsonNode; object: ObjectNode; array: ArrayNode }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.constantFrom(...scalars, ...strings),
    longString,
    tie('object'),
    tie('array'),
  ),
  object: fc
    .array(fc.tuple(key, tie('node')), { maxLength: 6 })
    .map((members) => ({ members: members.map(([name, value]) => ({ ...name, value })) })),
  array: fc.array(tie('node'), { maxLength: 4 }).map((items) => ({ items })),
}));

export const jsonNode = node;
export const jsonObject = object;
/** White space to put between tokens, used in turn. */
export const spaces = fc.array(fc.constantFrom('', ' ', '\n', '\t', '\r\n  '), {
  minLength: 1,
  maxLength: 7,
});

/** The text of a value with this white space between its tokens, none around it. */
export function textOf(value: JsonNode, between: readonly string[] = ['']): string {
  let turn = 0;
  const space = (): string => between[turn++ % between.length] ?? '';
  const write = (current: JsonNode): string => {
    if (typeof current === 'string') return current;
    const items =
      'items' in current
        ? current.items.map((item) => `${space()}${write(item)}${space()}`)
        : current.members.map(
            (m) => `${space()}${m.keyText}${space()}:${space()}${write(m.value)}${space()}`,
          );
    const inner = items.length === 0 ? space() : items.join(',');
    return 'items' in current ? `[${inner}]` : `{${inner}}`;
  };
  return write(value);
}

/** Without the white space between tokens. */
export function compact(text: string): string {
  let result = '';
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const char = text[i] as string;
    if (inString && char === '\\') result += char + (text[++i] ?? '');
    else {
      if (char === '"') inString = !inString;
      if (inString || !' \t\r\n'.includes(char)) result += char;
    }
  }
  return result;
}

/** A form in which two values of the same meaning are equal: the order of keys does not count. */
export function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return ['array', ...value.map(canonical)];
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? '-0' : value;
  return Object.entries(value)
    .map(([name, item]) => [name, canonical(item)] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** As the parser of the platform takes it. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
