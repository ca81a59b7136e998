import { ByteSource } from './byte-source.js';
import type { CaseTwins } from './case-twins.js';
import { OPEN_ARRAY, OPEN_OBJECT, QUOTE } from './json-bytes.js';
import { decodeString } from './json-decode.js';
import { JsonGrammar } from './json-grammar.js';
import { JsonScanner } from './json-scanner.js';
import { JsonSyntaxError } from './json-syntax-error.js';

export type Opener = typeof OPEN_OBJECT | typeof OPEN_ARRAY;

/**
 * Where the items of one object or array stand in its bytes. Never changes once made, so documents, their forks and
 * all attempts share it, together with the indexes of nested values that somebody asked for.
 */
export class JsonIndex {
  readonly count: number;
  readonly #stride: number;
  #children: Map<number, JsonIndex | null> | null = null;

  private constructor(
    readonly source: ByteSource,
    /** First byte and the byte after the last, white space around the value included. */
    readonly start: number,
    readonly end: number,
    /** Offset of the opening bracket. */
    readonly open: number,
    readonly opener: Opener,
    private readonly table: readonly number[],
    private readonly escapedKeys: ReadonlyMap<number, string> | null,
  ) {
    this.#stride = opener === OPEN_OBJECT ? 4 : 2;
    this.count = table.length / this.#stride;
  }

  /** @throws JsonSyntaxError */
  static scan(source: ByteSource, start: number, end: number, opener: Opener): JsonIndex {
    const scanner = new JsonScanner(source, opener);
    source.each(start, end, (buffer, from, to, base) => scanner.feed(buffer, from, to, base));
    return JsonIndex.finish(scanner, source, start, end, opener);
  }

  /** The same from a scanner that has been fed. @throws JsonSyntaxError */
  static finish(
    scanner: JsonScanner,
    source: ByteSource,
    start: number,
    end: number,
    opener: Opener,
  ): JsonIndex {
    scanner.finish(end);
    const first = start === 0 && source.byteAt(0) === 0xef ? 3 : start;
    return new JsonIndex(source, first, end, scanner.open, opener, scanner.take(), scanner.escapedKeys);
  }

  /** Where the value is first none of JSON, at any depth but within texts; -1 where it is JSON. */
  faultAt(): number {
    const grammar = new JsonGrammar();
    let fault = -1;
    this.source.each(this.start, this.end, (buffer, from, to, base) => {
      if (fault >= 0) return;
      const at = grammar.feed(buffer, from, to);
      if (at >= 0) fault = base + at;
    });
    return fault;
  }

  /**
   * Whether a key holds what some readers drop or end it at: an escaped NUL (unescaped ones are no JSON), bytes that are no
   * UTF-8, half a surrogate pair.
   */
  hasDoubtfulKey(): boolean {
    for (const key of this.escapedKeys?.values() ?? [])
      if (key.includes('\0') || !key.isWellFormed()) return true;
    for (let at = 0; at < this.table.length; at += this.#stride)
      if (!this.source.isUtf8(this.table[at] as number, this.table[at + 1] as number)) return true;
    return false;
  }

  /** `scan` of a whole buffer; undefined where it is no such value. */
  static tryScan(source: ByteSource, start: number, end: number, opener: Opener): JsonIndex | undefined {
    try {
      return JsonIndex.scan(source, start, end, opener);
    } catch (error) {
      if (error instanceof JsonSyntaxError) return undefined;
      throw error;
    }
  }

  /** Start of the key in an object, of the value in an array. */
  itemStart(slot: number): number {
    return this.table[slot * this.#stride] as number;
  }

  valueStart(slot: number): number {
    return this.table[(slot + 1) * this.#stride - 2] as number;
  }

  valueEnd(slot: number): number {
    return this.table[(slot + 1) * this.#stride - 1] as number;
  }

  key(slot: number): string {
    const start = this.table[slot * 4] as number;
    const end = this.table[slot * 4 + 1] as number;
    return this.escapedKeys?.get(slot) ?? this.source.text(start + 1, end - 1, 'utf8');
  }

  /** The last member before `before` with this key, or -1. Bytes are compared; only escaped keys were decoded. */
  findLast(key: string, before: number): number {
    if (!isAscii(key)) return this.#findLastDecoded(key, before);
    const table = this.table;
    for (let slot = before - 1; slot >= 0; slot--) {
      const start = table[slot * 4] as number;
      const bytes = (table[slot * 4 + 1] as number) - start - 2;
      if (bytes === key.length) {
        if (this.source.matches(start + 1, key)) return slot;
      } else if (this.escapedKeys !== null && this.escapedKeys.get(slot) === key) {
        return slot;
      }
    }
    return -1;
  }

  /** The first member whose key one of the names differs from in case only, or -1. Keys are decoded only where they may be one. */
  findCaseTwin(twins: CaseTwins): number {
    const table = this.table;
    for (let slot = 0; slot < this.count; slot++) {
      const start = (table[slot * 4] as number) + 1;
      const bytes = (table[slot * 4 + 1] as number) - start - 1;
      if (this.escapedKeys?.has(slot) !== true) {
        if (!twins.fits(bytes, this.source.byteAt(start)) || this.#isOneOf(twins.names, start, bytes))
          continue;
      }
      if (twins.of(this.key(slot)) !== null) return slot;
    }
    return -1;
  }

  /** The text of a member or item; undefined where it is no (valid) string. */
  string(slot: number): string | undefined {
    const start = this.valueStart(slot);
    if (this.source.byteAt(start) !== QUOTE) return undefined;
    const end = this.valueEnd(slot);
    return this.source.plainText(start, end) ?? decodeString(this.source.slice(start, end));
  }

  /** As {@link child}, but made for the one who asks only: of a million items it would be too much to keep. */
  nested(slot: number, opener: Opener): JsonIndex | undefined {
    const start = this.valueStart(slot);
    if (this.source.byteAt(start) !== opener) return undefined;
    return JsonIndex.tryScan(this.source, start, this.valueEnd(slot), opener);
  }

  /** The index of a nested value, made on first use; undefined where the value is none of that kind or is broken. */
  child(slot: number, opener: Opener): JsonIndex | undefined {
    const start = this.valueStart(slot);
    if (this.source.byteAt(start) !== opener) return undefined;
    let child = this.#children?.get(slot);
    if (child === undefined) {
      child = this.nested(slot, opener) ?? null;
      (this.#children ??= new Map()).set(slot, child);
    }
    return child ?? undefined;
  }

  #isOneOf(names: readonly string[], start: number, bytes: number): boolean {
    for (const name of names) if (name.length === bytes && this.source.matches(start, name)) return true;
    return false;
  }

  #findLastDecoded(key: string, before: number): number {
    for (let slot = before - 1; slot >= 0; slot--) if (this.key(slot) === key) return slot;
    return -1;
  }
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false;
  return true;
}
