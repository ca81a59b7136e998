import { ByteSource } from './byte-source.js';
import type { CaseTwins } from './case-twins.js';
import { OPEN_ARRAY, OPEN_OBJECT } from './json-bytes.js';
import { JsonContainer } from './json-container.js';
import { JsonIndex } from './json-index.js';
import { JsonSyntaxError } from './json-syntax-error.js';

const NO_KEYS: readonly string[] = [];

/**
 * A JSON object as its bytes, an index of its members, and edits. What no edit names keeps its bytes at any depth:
 * number forms, escapes, key order, duplicate keys, white space. Owned by one exchange or attempt; forks share the
 * bytes and the index. A key that stands twice: the last counts, and the others go when it is rewritten or deleted.
 */
export class JsonDocument extends JsonContainer {
  /** Keys of added members, by slot beyond those of the bytes. */
  #addedKeys = NO_KEYS;

  private constructor(index: JsonIndex, parent: JsonContainer | null, slot: number) {
    super(index, parent, slot);
  }

  /** @throws JsonSyntaxError where the bytes are no JSON object (RFC 8259; a UTF-8 BOM is dropped) */
  static parse(bytes: Buffer | readonly Buffer[]): JsonDocument {
    const source = ByteSource.of(bytes);
    return new JsonDocument(JsonIndex.scan(source, 0, source.length, OPEN_OBJECT), null, 0);
  }

  static tryParse(bytes: Buffer | readonly Buffer[]): JsonDocument | undefined {
    try {
      return JsonDocument.parse(bytes);
    } catch (error) {
      if (error instanceof JsonSyntaxError) return undefined;
      throw error;
    }
  }

  /** Over an index made elsewhere, as the indexer of an arriving body does. */
  static over(index: JsonIndex): JsonDocument {
    return new JsonDocument(index, null, 0);
  }

  /** @internal */
  static view(index: JsonIndex, parent: JsonContainer, slot: number): JsonDocument {
    return new JsonDocument(index, parent, slot);
  }

  /** Decoded, in order of the last occurrence of each. */
  keys(): string[] {
    const keys = new Set<string>();
    const count = this.index.count;
    for (let slot = this.slots - 1; slot >= 0; slot--) {
      if (this.isDeleted(slot)) continue;
      keys.add(slot < count ? this.index.key(slot) : (this.#addedKeys[slot - count] as string));
    }
    return [...keys].toReversed();
  }

  has(key: string): boolean {
    return this.#find(key) !== -1;
  }

  /**
   * Where these bytes are first none of JSON, at any depth but within texts; -1 where they are JSON. A lenient reader could find
   * other members in them than this one, which below the top level looks for closed texts and brackets only.
   */
  faultAt(): number {
    return this.index.faultAt();
  }

  /** Whether a key of the bytes holds what some readers drop, or end it at. */
  hasDoubtfulKey(): boolean {
    return this.index.hasDoubtfulKey();
  }

  /** The first key of the bytes, decoded, that one of the names differs from in case only. */
  caseTwin(twins: CaseTwins): string | undefined {
    const slot = this.index.findCaseTwin(twins);
    return slot === -1 ? undefined : this.index.key(slot);
  }

  /** The bytes of the value; a copy only where they span parts. Never write into them. */
  raw(key: string): Buffer | undefined {
    const slot = this.#find(key);
    return slot === -1 ? undefined : this.rawAt(slot);
  }

  /** The parsed value, numbers with JavaScript's precision; undefined where it is absent or broken inside. */
  get(key: string): unknown {
    const slot = this.#find(key);
    return slot === -1 ? undefined : this.valueAt(slot);
  }

  /** Undefined where the value is no (valid) string. */
  string(key: string): string | undefined {
    const slot = this.#find(key);
    return slot === -1 ? undefined : this.stringAt(slot);
  }

  /** Undefined where the value is no number; anything else is not decoded, however large it is. */
  number(key: string): number | undefined {
    const first = this.raw(key)?.[0];
    return first !== undefined && (first === 0x2d || (first >= 0x30 && first <= 0x39))
      ? (this.get(key) as number)
      : undefined;
  }

  /** Whether the value is exactly `true`. */
  isTrue(key: string): boolean {
    const slot = this.#find(key);
    return slot !== -1 && this.isTrueAt(slot);
  }

  /** `JSON.stringify`, a bigint by its digits; what JSON cannot hold (undefined) deletes the key. */
  set(key: string, value: unknown): void {
    const bytes = this.encode(value);
    if (bytes === null) this.delete(key);
    else this.setRaw(key, bytes);
  }

  /** @param bytes one JSON value: the caller's promise */
  setRaw(key: string, bytes: Buffer): void {
    this.#write(key, bytes);
  }

  #write(key: string, bytes: Buffer | readonly Buffer[]): void {
    requireText(key);
    let slot = this.#find(key);
    if (slot === -1) {
      slot = this.slots;
      this.#addedKeys = this.#addedKeys.concat(key);
      this.added++;
    } else {
      this.#dropTwins(key, slot);
    }
    this.write(slot, bytes);
  }

  delete(key: string): void {
    requireText(key);
    const slot = this.#find(key);
    if (slot === -1) return;
    this.#dropTwins(key, slot);
    this.write(slot, null);
  }

  /** An editable view: its edits are this document's. Undefined where the value is no object or broken inside. */
  object(key: string): JsonDocument | undefined {
    const slot = this.#find(key);
    return slot === -1 ? undefined : this.viewAt(slot, OPEN_OBJECT, viewObject);
  }

  /** As `object`, for an array. */
  array(key: string): JsonArray | undefined {
    const slot = this.#find(key);
    return slot === -1 ? undefined : this.viewAt(slot, OPEN_ARRAY, viewArray);
  }

  /**
   * @internal Where the items of an array stand, as it is now; only to be read. Undefined where the value is no array or
   * broken inside.
   */
  items(key: string): JsonIndex | undefined {
    const slot = this.#find(key);
    return slot === -1 ? undefined : this.itemsAt(slot, OPEN_ARRAY);
  }

  /** @internal As `setRaw`, of a value in several pieces. Views of what stood there are not this document's any more. */
  setParts(key: string, parts: readonly Buffer[]): void {
    this.#write(key, parts);
  }

  /** An independent document with the same content; bytes and index are shared. */
  fork(): JsonDocument {
    return this.copy(null, 0);
  }

  protected override copy(parent: JsonContainer | null, slot: number): JsonDocument {
    const copy = new JsonDocument(this.index, parent, slot);
    copy.#addedKeys = this.#addedKeys;
    copy.adopt(this);
    return copy;
  }

  protected override label(slot: number): Buffer {
    return Buffer.from(`${JSON.stringify(this.#addedKeys[slot - this.index.count])}:`, 'utf8');
  }

  protected override viewEdited(slot: number): void {
    if (slot < this.index.count) this.#dropTwins(this.index.key(slot), slot);
  }

  #find(key: string): number {
    const count = this.index.count;
    for (let slot = this.slots - 1; slot >= count; slot--) {
      if (this.#addedKeys[slot - count] === key && !this.isDeleted(slot)) return slot;
    }
    const slot = this.index.findLast(key, count);
    return slot !== -1 && this.isDeleted(slot) ? -1 : slot;
  }

  #dropTwins(key: string, slot: number): void {
    if (slot >= this.index.count) return;
    let twin = this.index.findLast(key, slot);
    if (twin === -1) return;
    const twins: number[] = [];
    for (; twin !== -1; twin = this.index.findLast(key, twin)) twins.push(twin);
    this.remove(twins.reverse());
  }
}

/** Trap: plugins need no types. Another key would be written as what is no JSON, for the provider to find. */
function requireText(key: unknown): void {
  if (typeof key !== 'string') throw new TypeError('the key of a member must be a string');
}

/** A JSON array inside a document, with the same promises. */
export class JsonArray extends JsonContainer {
  private constructor(index: JsonIndex, parent: JsonContainer | null, slot: number) {
    super(index, parent, slot);
  }

  /** @internal */
  static view(index: JsonIndex, parent: JsonContainer, slot: number): JsonArray {
    return new JsonArray(index, parent, slot);
  }

  get length(): number {
    return this.slots;
  }

  /** As {@link JsonDocument.raw}; undefined beyond the end. */
  raw(i: number): Buffer | undefined {
    return this.#holds(i) ? this.rawAt(i) : undefined;
  }

  get(i: number): unknown {
    return this.#holds(i) ? this.valueAt(i) : undefined;
  }

  string(i: number): string | undefined {
    return this.#holds(i) ? this.stringAt(i) : undefined;
  }

  /** An editable view, as {@link JsonDocument.object}. */
  object(i: number): JsonDocument | undefined {
    return this.#holds(i) ? this.viewAt(i, OPEN_OBJECT, viewObject) : undefined;
  }

  array(i: number): JsonArray | undefined {
    return this.#holds(i) ? this.viewAt(i, OPEN_ARRAY, viewArray) : undefined;
  }

  /** What JSON cannot hold becomes null. @throws RangeError beyond the end */
  set(i: number, value: unknown): void {
    this.setRaw(i, this.encode(value) ?? (this.encode(null) as Buffer));
  }

  /** @param bytes one JSON value: the caller's promise. @throws RangeError beyond the end */
  setRaw(i: number, bytes: Buffer): void {
    if (!this.#holds(i)) throw new RangeError('array index out of range');
    this.write(i, bytes);
  }

  push(value: unknown): void {
    this.pushRaw(this.encode(value) ?? (this.encode(null) as Buffer));
  }

  pushRaw(bytes: Buffer): void {
    this.added++;
    this.write(this.slots - 1, bytes);
  }

  protected override copy(parent: JsonContainer | null, slot: number): JsonArray {
    const copy = new JsonArray(this.index, parent, slot);
    copy.adopt(this);
    return copy;
  }

  protected override label(): null {
    return null;
  }

  protected override viewEdited(): void {}

  #holds(i: number): boolean {
    return Number.isInteger(i) && i >= 0 && i < this.slots;
  }
}

const viewObject = (index: JsonIndex, parent: JsonContainer, slot: number): JsonDocument =>
  JsonDocument.view(index, parent, slot);
const viewArray = (index: JsonIndex, parent: JsonContainer, slot: number): JsonArray =>
  JsonArray.view(index, parent, slot);
