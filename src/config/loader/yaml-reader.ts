import { isAlias, isMap, isPair, isScalar, isSeq, type Alias, type Pair, type YAMLMap } from 'yaml';
import { keepNumberText, numberTextOf, oddNumberText } from '../../common/json/number-texts.js';
import { shownKey, type ConfigPath } from './config-path.js';
import { MAX_DEPTH } from './json-shortcut.js';
import { isPlainObject, setOwn, type PlainObject } from './plain-object.js';

/** Values that aliases may add to those written: a base for many entries stays far below, an alias bomb far above. */
const ALIASED_AT_LEAST = 10_000;
const ALIASED_PER_WRITTEN = 30;

/** A value of the file and how many values it holds when every alias is followed. */
interface Read {
  readonly value: unknown;
  readonly size: number;
  /** Of a number that is written in a way of its own. */
  readonly text?: string | undefined;
}

interface Anchor extends Read {
  readonly node: unknown;
}

/** What YAML 1.2's core schema knows, without the prefix that `!!` stands for. */
const CORE_TAGS = ['str', 'int', 'bool', 'null', 'seq', 'map'].map((name) => `tag:yaml.org,2002:${name}`);
const TAGGED =
  'a value that begins with "!" is a YAML tag, which is not supported here; quote it, as in "!preview"';

type Report = (path: ConfigPath, message: string) => void;

/**
 * Turns the nodes of one YAML document into plain values: strings, numbers, bigints (integers beyond 2^53), booleans,
 * null, arrays and objects whose keys are all own and plain. The library's `toJS` is not used: it keeps dates and
 * maps with other keys, and follows aliases before they can be counted. What an alias names is read once and shared.
 */
export class YamlReader {
  /** What each alias stands for, for those who look for lines. */
  readonly targets = new Map<Alias, unknown>();
  readonly #anchors = new Map<string, Anchor | 'open'>();
  #written = 0;
  #aliased = 0;
  #bombReported = false;

  constructor(private readonly report: Report) {}

  read(node: unknown, path: ConfigPath = []): unknown {
    return this.#read(node, path).value;
  }

  #read(node: unknown, path: ConfigPath): Read {
    this.#written++;
    if (isAlias(node)) return this.#alias(node, path);
    if (isTagged(node)) return this.#refuse(path, TAGGED);
    const anchor = (isScalar(node) || isMap(node) || isSeq(node)) && node.anchor ? node.anchor : null;
    if (anchor !== null) this.#anchors.set(anchor, 'open');
    const read = this.#plain(node, path);
    if (anchor !== null) this.#anchors.set(anchor, { ...read, node });
    return read;
  }

  #plain(node: unknown, path: ConfigPath): Read {
    if (path.length > MAX_DEPTH)
      return this.#refuse(path.slice(0, 3), `nested more than ${MAX_DEPTH} levels deep`);
    if (isMap(node)) return this.#map(node, path);
    if (isSeq(node)) {
      const items = node.items.map((item, i) => this.#read(item, [...path, i]));
      const value = items.map((item) => item.value);
      for (const [i, { text }] of items.entries()) if (text !== undefined) keepNumberText(value, i, text);
      return { value, size: sizeOf(items) };
    }
    if (!isScalar(node)) return { value: null, size: 1 };
    const value = scalarValue(node.value);
    return { value, size: 1, text: oddNumberText(value, node.source) };
  }

  #alias(node: Alias, path: ConfigPath): Read {
    const anchor = this.#anchors.get(node.source);
    if (anchor === undefined) {
      return this.#refuse(
        path,
        'no anchor (&name) of that name stands before this alias; a text that begins with "*" must be quoted',
      );
    }
    if (anchor === 'open') return this.#refuse(path, 'this alias stands inside what it refers to');
    this.targets.set(node, anchor.node);
    this.#aliased += anchor.size;
    if (this.#aliased <= ALIASED_AT_LEAST + ALIASED_PER_WRITTEN * this.#written) return anchor;
    if (!this.#bombReported) this.report(path, 'the aliases of this file expand to far too many values');
    this.#bombReported = true;
    return { value: null, size: 1 };
  }

  #map(node: YAMLMap, path: ConfigPath): Read {
    const value: PlainObject = {};
    const merges: { read: Read; path: ConfigPath }[] = [];
    let size = 1;
    for (const pair of node.items) {
      const key = keyOf(pair);
      if (isTagged(pair.key)) this.report(path, TAGGED);
      if (key === null) {
        this.report(path, 'a key is empty or no plain text; quote it');
        continue;
      }
      const here = [...path, key];
      const twice = isMergePair(pair) ? merges.length > 0 : Object.hasOwn(value, key);
      if (twice) this.report(here, `the key "${shownKey(key)}" stands twice in one mapping; remove one`);
      const read = this.#read(pair.value, here);
      size += read.size;
      if (isMergePair(pair)) merges.push({ read, path: here });
      else if (!twice) {
        setOwn(value, key, read.value);
        if (read.text !== undefined) keepNumberText(value, key, read.text);
      }
    }
    for (const merge of merges) this.#merge(value, merge.read.value, merge.path);
    return { value, size };
  }

  /** What stands in the mapping itself wins, then the sources in their order. */
  #merge(target: PlainObject, source: unknown, path: ConfigPath): void {
    for (const one of Array.isArray(source) ? source : [source]) {
      if (!isPlainObject(one)) {
        this.report(path, '"<<" takes a mapping or a list of mappings, such as "<<: *base"');
        return;
      }
      for (const key of Object.keys(one)) {
        if (Object.hasOwn(target, key)) continue;
        setOwn(target, key, one[key]);
        const text = numberTextOf(one, key);
        if (text !== undefined) keepNumberText(target, key, text);
      }
    }
  }

  #refuse(path: ConfigPath, message: string): Read {
    this.report(path, message);
    return { value: null, size: 1 };
  }
}

/** With a tag that is not resolved. Trap: a lone `!` is dropped without a warning, and would turn `! a` into `a`. */
function isTagged(node: unknown): boolean {
  if (!isScalar(node) && !isMap(node) && !isSeq(node)) return false;
  return node.tag !== undefined && !CORE_TAGS.includes(node.tag);
}

export function isMergePair(pair: Pair): boolean {
  const key = isScalar(pair.key) ? pair.key.value : null;
  return typeof key === 'symbol' && key.description === '<<';
}

/** The key as text: `1: x` and `true: x` are keys as they are written. */
export function keyOf(pair: Pair): string | null {
  if (!isPair(pair) || !isScalar(pair.key)) return null;
  const { value, source } = pair.key;
  if (typeof value === 'symbol') return '<<';
  if (typeof value === 'string') return value;
  return source === undefined || source === '' ? null : source;
}

function scalarValue(value: unknown): unknown {
  if (typeof value !== 'bigint') return value ?? null;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

function sizeOf(reads: readonly Read[]): number {
  return reads.reduce((sum, read) => sum + read.size, 1);
}
