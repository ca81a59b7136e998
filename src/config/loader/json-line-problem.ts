import { JsonWalk } from '../../common/json/json-walk.js';
import type { ConfigPath } from './config-path.js';
import { shownKey } from './config-path.js';
import { MAX_DEPTH } from './json-shortcut.js';
import { isPlainObject } from './plain-object.js';

/** What is wrong with a line, and where in it. Of the line itself nothing is shown: it may hold a key. */
export interface LineProblem {
  readonly at: ConfigPath;
  readonly message: string;
}

const EXAMPLE = 'each line must be one JSON object such as {"id":"team-search","keys":[…]}';
const AROUND = 'write one consumer a line, with no brackets around them and no commas between them';

/** Why a line that `readPlainJson` did not take is none that can be used. */
export function jsonLineProblem(line: string): LineProblem {
  const value = parsed(line);
  if (value === undefined) return { at: [], message: syntaxProblem(line) };
  if (Array.isArray(value.json)) return { at: [], message: `holds a list; ${AROUND}` };
  if (!isPlainObject(value.json)) return { at: [], message: `holds no object; ${EXAMPLE}` };
  // First of all: what looks for the others goes down by calls.
  const deep = tooDeep(value.json);
  if (deep !== null) return { at: deep, message: `nested too deeply (more than ${MAX_DEPTH} levels)` };
  const twin = firstTwin(line);
  if (twin !== null)
    return { at: twin, message: `the key "${shownKey(String(twin.at(-1)))}" stands twice; remove one` };
  return {
    at: pathOfLongNumber(value.json, []) ?? [],
    message: 'holds a number of 16 digits or more, which would be rounded; if a text is meant, quote it',
  };
}

/** Why the lines of a file are no objects: the file as a whole is another kind of JSON. Null where it is none. */
export function wholeFileProblem(text: string): string | null {
  const whole = parsed(text);
  if (whole === undefined || !text.trim().includes('\n')) return null;
  if (Array.isArray(whole.json)) return `is one JSON list; ${AROUND} (jq -c '.[]' makes that of it)`;
  return "is one JSON value over several lines; write each consumer on one line (jq -c '.' makes that of it)";
}

function syntaxProblem(line: string): string {
  if (/^(#|\/\/)/.test(line)) return 'is a comment; this file can hold none';
  if (line.endsWith(',') && parsed(line.slice(0, -1)) !== undefined) return 'ends with a comma; remove it';
  if (/^[[\]],?$/.test(line)) return `is a bracket alone; ${AROUND}`;
  if (!line.startsWith('{')) return `is no JSON object; ${EXAMPLE}`;
  const { depth, trailing } = shape(line);
  if (depth > 0) return 'is cut off: a bracket or a quote is not closed; a consumer must stand on one line';
  if (trailing > 0)
    return `has more behind its object, at character ${trailing + 1}; write each consumer on a line of its own`;
  return `is no valid JSON; names and texts stand in double quotes, and no comma stands before a closing bracket`;
}

function parsed(text: string): { readonly json: unknown } | undefined {
  try {
    return { json: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

/** How many brackets (and quotes) are open at the end, and where something stands behind the first object. */
function shape(line: string): { depth: number; trailing: number } {
  let depth = 0;
  let inText = false;
  for (let i = 0; i < line.length; i++) {
    const char = line[i] as string;
    if (inText) {
      if (char === '\\') i++;
      else if (char === '"') inText = false;
    } else if (char === '"') inText = true;
    else if (char === '{' || char === '[') depth++;
    else if ((char === '}' || char === ']') && --depth <= 0 && i < line.length - 1)
      return { depth: 0, trailing: i + 1 };
  }
  return { depth: depth + (inText ? 1 : 0), trailing: 0 };
}

interface Level {
  readonly path: ConfigPath;
  readonly names: Set<string> | null;
  items: number;
}

/** The path of the first name that stands twice in its object. */
function firstTwin(line: string): ConfigPath | null {
  let twin: ConfigPath | null = null;
  const member = (key: string, level: Level): ConfigPath => {
    if (level.names === null) return [...level.path, level.items++];
    const path = [...level.path, key];
    if (level.names.has(key)) twin ??= path;
    level.names.add(key);
    return path;
  };
  const outside: Level = { path: [], names: null, items: 0 };
  const walk = new JsonWalk<Level>(
    {
      open: (kind, key, level) => ({
        path: level === outside ? [] : member(key, level),
        names: kind === 'object' ? new Set() : null,
        items: 0,
      }),
      value: (key, _value, level) => void member(key, level),
      close: () => {},
    },
    outside,
  );
  walk.feed(Buffer.from(line));
  return twin;
}

/** Where in its first object something is that is nested too deeply. Trap: a depth of thousands leaves no room for calls. */
function tooDeep(json: unknown): ConfigPath | null {
  const open: { readonly value: unknown; readonly depth: number; readonly at: ConfigPath }[] = [
    { value: json, depth: 0, at: [] },
  ];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, depth, at } = next;
    if (depth > MAX_DEPTH) return at;
    for (const [key, member] of membersOf(value))
      open.push({ value: member, depth: depth + 1, at: depth === 0 ? [key] : at });
  }
  return null;
}

function membersOf(value: unknown): Iterable<readonly [string | number, unknown]> {
  return Array.isArray(value) ? value.entries() : isPlainObject(value) ? Object.entries(value) : [];
}

function pathOfLongNumber(value: unknown, path: ConfigPath): ConfigPath | null {
  if (typeof value === 'number') return String(value).replace(/\D/g, '').length >= 15 ? path : null;
  for (const [key, member] of membersOf(value)) {
    const found = pathOfLongNumber(member, [...path, key]);
    if (found !== null) return found;
  }
  return null;
}
