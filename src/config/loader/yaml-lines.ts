import { isAlias, isMap, isNode, isSeq, type Alias, type YAMLMap } from 'yaml';
import type { ConfigPath } from './config-path.js';
import { isMergePair, keyOf } from './yaml-reader.js';

/** Line numbers, from 1, of offsets in a text. */
export class LineIndex {
  readonly #starts: number[] = [0];

  constructor(text: string) {
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      const ends = code === 0x0a || (code === 0x0d && text.charCodeAt(i + 1) !== 0x0a);
      if (ends) this.#starts.push(i + 1);
    }
  }

  lineAt(offset: number): number {
    let low = 0;
    let high = this.#starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((this.#starts[middle] ?? 0) <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  }
}

interface Place {
  /** The value, to go on from. */
  readonly node: unknown;
  readonly offset: number | undefined;
}

/** The offset of a value: that of its key, or of its list item, or of the nearest thing around it that exists. */
export function offsetOf(root: unknown, path: ConfigPath, targets: ReadonlyMap<Alias, unknown>): number {
  const follow = (node: unknown): unknown => (isAlias(node) ? targets.get(node) : node);
  let place: Place = { node: root, offset: startOf(root) };
  let offset = place.offset ?? 0;
  for (const step of path) {
    const next = stepInto(follow(place.node), step, follow);
    if (next === null) break;
    place = next;
    offset = next.offset ?? offset;
  }
  return offset;
}

function stepInto(node: unknown, step: string | number, follow: (node: unknown) => unknown): Place | null {
  if (isSeq(node) && typeof step === 'number') {
    const item = node.items[step];
    return item === undefined ? null : { node: item, offset: startOf(item) };
  }
  return isMap(node) && typeof step === 'string' ? findKey(node, step, follow) : null;
}

function findKey(map: YAMLMap, key: string, follow: (node: unknown) => unknown): Place | null {
  // The last one: of a key that stands twice, the second is the one to mend.
  const own = map.items.findLast((pair) => keyOf(pair) === key);
  if (own !== undefined) return { node: own.value, offset: startOf(own.key) };
  for (const pair of map.items) {
    if (!isMergePair(pair)) continue;
    const source = follow(pair.value);
    for (const one of isSeq(source) ? source.items.map(follow) : [source]) {
      const found = isMap(one) && one !== map ? findKey(one, key, follow) : null;
      if (found !== null) return found;
    }
  }
  return null;
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}
