const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** An object or array on the way to a value. */
export interface WalkFrame {
  readonly kind: 'object' | 'array';
  /** The member it stands under; of an item of an array, that of the array. '' at the top. */
  readonly key: string;
  readonly parent: WalkFrame | null;
  /** Names and text values of an object's own members, every one, also of names that stand twice. */
  readonly texts: (readonly [name: string, value: string])[];
  /** Names of all own members. */
  readonly names: Set<string>;
}

export interface WalkListener {
  /** A text value; `frame` is what holds it. */
  onText(key: string, value: string, frame: WalkFrame): void;
  /** An object is over. */
  onObject(frame: WalkFrame): void;
}

/**
 * Visits every text value of a JSON text, at any depth, with its name. Unlike a parser it sees members whose name stands
 * twice, of which another reader may take another one; what is no JSON is passed over. One pass, no recursion.
 */
export function walkStrings(text: string, listener: WalkListener): void {
  let frame: WalkFrame | null = null;
  let name = '';
  let at = 0;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = endOfString(text, at);
      const value = decoded(text.slice(at, end));
      at = end;
      if (frame?.kind === 'object' && isName(text, end)) {
        name = value;
        frame.names.add(value);
      } else if (frame !== null) {
        const key: string = frame.kind === 'object' ? name : frame.key;
        if (frame.kind === 'object') frame.texts.push([key, value]);
        listener.onText(key, value, frame);
      }
      continue;
    }
    at++;
    if (code === 0x7b || code === 0x5b) {
      const key: string = frame === null ? '' : frame.kind === 'object' ? name : frame.key;
      frame = { kind: code === 0x7b ? 'object' : 'array', key, parent: frame, texts: [], names: new Set() };
    } else if ((code === 0x7d || code === 0x5d) && frame !== null) {
      if (frame.kind === 'object') listener.onObject(frame);
      frame = frame.parent;
    }
  }
}

/** Behind the closing quote; the end of the text where there is none. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  for (;;) {
    const quote = text.indexOf('"', at);
    if (quote < 0) return text.length;
    let slashes = 0;
    while (quote - 1 - slashes > start && text.charCodeAt(quote - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return quote + 1;
    at = quote + 1;
  }
}

function isName(text: string, at: number): boolean {
  let i = at;
  while (i < text.length && text.charCodeAt(i) <= 0x20) i++;
  return text[i] === ':';
}

function decoded(raw: string): string {
  if (!raw.includes('\\')) return raw.slice(1, -1);
  try {
    return JSON.parse(raw) as string;
  } catch {
    // No reader will take it for anything else.
    return raw.slice(1, -1);
  }
}
