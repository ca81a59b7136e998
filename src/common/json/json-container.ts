import { COMMA, QUOTE } from './json-bytes.js';
import { ByteSource } from './byte-source.js';
import { decodeString, decodeValue } from './json-decode.js';
import { encodeJson } from './json-encode.js';
import { JsonIndex, type Opener } from './json-index.js';
import { JsonParts } from './json-parts.js';

/** Of one value, in one piece or several. */
type Bytes = Buffer | readonly Buffer[];

/** What stands in place of an item: other bytes, an opened view, a view of other bytes, or neither (deleted). */
interface Edit {
  readonly slot: number;
  readonly bytes: Bytes | null;
  readonly view: JsonContainer | null;
}

/** Of all without edits; {@link JsonContainer} never writes into it. */
const NO_EDITS: Edit[] = [];
const FEW_EDITS = 8;
const TRUE = Buffer.from('true');
const COMMA_BYTES = Buffer.from([COMMA]);

/**
 * An index and the edits over it: what objects and arrays have in common. Items are addressed by slot: those of the
 * bytes first, then added ones. A view's edit reports upwards, so that the outer document renders it. Never writes
 * into bytes it was given, never changes the shared index.
 */
export abstract class JsonContainer {
  /** Ascending by slot. */
  #edits: Edit[] = NO_EDITS;
  #dirty = false;
  #rendered: Buffer[] | null = null;
  protected added = 0;

  protected constructor(
    protected readonly index: JsonIndex,
    private parent: JsonContainer | null,
    private readonly parentSlot: number,
  ) {}

  /** Size of what `parts()` gives. */
  get byteLength(): number {
    if (!this.#dirty) return this.index.end - this.index.start;
    let length = 0;
    for (const part of this.#render()) length += part.length;
    return length;
  }

  /** The bytes, edits included: slices of the original buffers and small new ones. Never write into them. */
  parts(): Buffer[] {
    return this.#render().slice();
  }

  /** The same as one buffer, which costs a copy where there are several parts. */
  toBuffer(): Buffer {
    const parts = this.#render();
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  }

  /** The value's bytes before it in an added item, such as `"key":`. */
  protected abstract label(slot: number): Buffer | null;
  /** An independent copy that belongs to `parent`. */
  protected abstract copy(parent: JsonContainer | null, slot: number): JsonContainer;
  /** A view of this slot is edited for the first time. */
  protected abstract viewEdited(slot: number): void;

  protected get slots(): number {
    return this.index.count + this.added;
  }

  protected isDeleted(slot: number): boolean {
    const edit = this.#edit(slot);
    return edit !== undefined && edit.bytes === null && edit.view === null;
  }

  protected rawAt(slot: number): Buffer | undefined {
    const edit = this.#edit(slot);
    if (edit === undefined)
      return this.index.source.slice(this.index.valueStart(slot), this.index.valueEnd(slot));
    if (edit.view !== null) return edit.view.toBuffer();
    return edit.bytes === null ? undefined : joined(edit.bytes);
  }

  protected valueAt(slot: number): unknown {
    const raw = this.rawAt(slot);
    return raw === undefined ? undefined : decodeValue(raw);
  }

  protected stringAt(slot: number): string | undefined {
    if (this.#edit(slot) === undefined) return this.index.string(slot);
    const raw = this.rawAt(slot);
    return raw?.[0] === QUOTE ? decodeString(raw) : undefined;
  }

  protected isTrueAt(slot: number): boolean {
    const { index } = this;
    const edit = this.#edit(slot);
    if (edit !== undefined) return Buffer.isBuffer(edit.bytes) && edit.bytes.equals(TRUE);
    const start = index.valueStart(slot);
    // The scanner has checked the literals of this level.
    return index.valueEnd(slot) - start === TRUE.length && index.source.byteAt(start) === TRUE[0];
  }

  protected viewAt<T extends JsonContainer>(
    slot: number,
    opener: Opener,
    make: (index: JsonIndex, parent: JsonContainer, slot: number) => T,
  ): T | undefined {
    const edit = this.#edit(slot);
    if (edit?.view) return edit.view.index.opener === opener ? (edit.view as T) : undefined;
    let index: JsonIndex | undefined;
    if (edit === undefined) index = this.index.child(slot, opener);
    else if (edit.bytes !== null) index = indexOf(edit.bytes, opener);
    if (index === undefined) return undefined;
    const view = make(index, this, slot);
    this.#put({ slot, bytes: edit?.bytes ?? null, view });
    return view;
  }

  /** As {@link viewAt}, but only to be read and kept by nobody. */
  protected itemsAt(slot: number, opener: Opener): JsonIndex | undefined {
    const edit = this.#edit(slot);
    if (edit === undefined) return this.index.child(slot, opener);
    if (edit.view !== null && !edit.view.#dirty)
      return edit.view.index.opener === opener ? edit.view.index : undefined;
    const bytes = edit.view === null ? edit.bytes : edit.view.#render();
    return bytes === null ? undefined : indexOf(bytes, opener);
  }

  protected write(slot: number, bytes: Bytes | null): void {
    this.#put({ slot, bytes, view: null });
    this.#touch();
  }

  /** As `write(slot, null)` of each, ascending. All at once: a client may write one key a million times. */
  protected remove(slots: readonly number[]): void {
    const old = this.#edits;
    const edits: Edit[] = [];
    let at = 0;
    for (const slot of slots) {
      for (; at < old.length && (old[at] as Edit).slot < slot; at++) edits.push(old[at] as Edit);
      const replaced = old[at]?.slot === slot ? old[at++] : undefined;
      const view = replaced?.view ?? null;
      if (view !== null) view.parent = null;
      edits.push({ slot, bytes: null, view: null });
    }
    for (; at < old.length; at++) edits.push(old[at] as Edit);
    this.#edits = edits;
    this.#touch();
  }

  protected encode(value: unknown): Buffer | null {
    return encodeJson(value) ?? null;
  }

  /** Takes over the edits of another container with the same index. Views nobody edited are left behind. */
  protected adopt(other: JsonContainer): void {
    this.#dirty = other.#dirty;
    if (!other.#dirty) return;
    this.added = other.added;
    const edits: Edit[] = [];
    for (const { slot, bytes, view } of other.#edits) {
      if (view !== null && view.#dirty) edits.push({ slot, bytes, view: view.copy(this, slot) });
      else if (view === null || bytes !== null) edits.push({ slot, bytes, view: null });
    }
    this.#edits = edits;
  }

  #touch(): void {
    const first = !this.#dirty;
    this.#dirty = true;
    this.#rendered = null;
    if (this.parent === null) return;
    if (first) this.parent.viewEdited(this.parentSlot);
    this.parent.#touch();
  }

  #edit(slot: number): Edit | undefined {
    const edits = this.#edits;
    if (edits.length === 0) return undefined;
    const edit = edits[this.#place(slot)];
    return edit?.slot === slot ? edit : undefined;
  }

  #put(edit: Edit): void {
    const place = this.#place(edit.slot);
    const old = this.#edits[place];
    if (old?.slot !== edit.slot) {
      // Trap: `splice` makes room for many more, and a document has two or three.
      if (this.#edits.length < FEW_EDITS) this.#edits = this.#edits.toSpliced(place, 0, edit);
      else this.#edits.splice(place, 0, edit);
      return;
    }
    // A replaced view lives on by itself: what its holder does to it shows nowhere.
    if (old.view !== null && old.view !== edit.view) old.view.parent = null;
    this.#edits[place] = edit;
  }

  /** Where the edit of this slot stands or would stand. */
  #place(slot: number): number {
    const edits = this.#edits;
    let low = 0;
    let high = edits.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((edits[middle] as Edit).slot < slot) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #render(): Buffer[] {
    if (this.#rendered === null) {
      const parts = new JsonParts();
      this.#renderInto(parts);
      this.#rendered = parts.build();
    }
    return this.#rendered;
  }

  #renderInto(parts: JsonParts): void {
    const { index } = this;
    const { source, count } = index;
    let cursor = index.start;
    let live = count;
    if (this.#dirty) {
      for (const edit of this.#edits) {
        const { slot } = edit;
        if (slot >= count) {
          const tail = count > 0 ? index.valueEnd(count - 1) : index.open + 1;
          if (cursor < tail) parts.addRange(source, cursor, (cursor = tail));
          if (edit.bytes === null && edit.view === null) continue;
          if (live++ > 0) parts.add(COMMA_BYTES);
          const label = this.label(slot);
          if (label !== null) parts.add(label);
          addValue(edit, parts);
        } else if (edit.bytes !== null || (edit.view !== null && edit.view.#dirty)) {
          parts.addRange(source, cursor, index.valueStart(slot));
          addValue(edit, parts);
          cursor = index.valueEnd(slot);
        } else if (edit.view === null) {
          // With a live item before it the comma before goes, else the one after.
          const first = count - live-- === slot;
          parts.addRange(source, cursor, first ? index.itemStart(slot) : index.valueEnd(slot - 1));
          cursor = first && slot + 1 < count ? index.itemStart(slot + 1) : index.valueEnd(slot);
        }
      }
    }
    parts.addRange(source, cursor, index.end);

    function addValue(edit: Edit, to: JsonParts): void {
      if (edit.view !== null) edit.view.#renderInto(to);
      else if (Buffer.isBuffer(edit.bytes)) to.add(edit.bytes);
      else for (const piece of edit.bytes ?? []) to.add(piece);
    }
  }
}

function joined(bytes: Bytes): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.concat(bytes);
}

function indexOf(bytes: Bytes, opener: Opener): JsonIndex | undefined {
  const source = ByteSource.of(bytes);
  return JsonIndex.tryScan(source, 0, source.length, opener);
}
