const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const LETTER_U = 0x75;
const HEX = '0123456789abcdef';
/** Above this a native copy is faster than a loop. */
const NATIVE_COPY_BYTES = 48;
const START_BYTES = 4096;
/** A buffer that has grown beyond this is not kept. */
const KEPT_BYTES = 1024 * 1024;
const FEW_MEMBERS = 16;
/** More members of one object are not put in order. */
const UNSORTED_LIMIT = 65_536;
/** What is put in order is copied, once for each object around it: this many times the text at most. */
const COPIES_LIMIT = 16;
/** What a short text may always cost. */
const COPIED_BYTES = 1024 * 1024;
const ESCAPES = new Map(
  Object.entries({ '"': 34, '\\': 92, b: 8, f: 12, n: 10, r: 13, t: 9 }).map(([letter, unit]) => [
    letter.charCodeAt(0),
    unit,
  ]),
);

/** The text that is written, and the order of the members in it. Reused; never holds what nobody asked for in between. */
export class CanonOutput {
  bytes = Buffer.allocUnsafeSlow(START_BYTES);
  length = 0;
  #scratch = Buffer.allocUnsafeSlow(START_BYTES);
  #moved = 0;
  readonly #order: number[] = [];

  reset(): void {
    this.length = 0;
    this.#moved = 0;
    if (this.bytes.length > KEPT_BYTES) this.bytes = Buffer.allocUnsafeSlow(START_BYTES);
    if (this.#scratch.length > KEPT_BYTES) this.#scratch = Buffer.allocUnsafeSlow(START_BYTES);
  }

  room(bytes: number): void {
    if (this.length + bytes <= this.bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(this.bytes.length * 2, this.length + bytes));
    this.bytes.copy(grown, 0, 0, this.length);
    this.bytes = grown;
  }

  put(byte: number): void {
    if (this.length === this.bytes.length) this.room(1);
    this.bytes[this.length++] = byte;
  }

  text(text: string): void {
    this.room(text.length * 3);
    this.length += this.bytes.write(text, this.length, 'utf8');
  }

  copy(source: Buffer, from: number, to: number): void {
    this.room(to - from);
    this.length = copyBytes(source, from, to, this.bytes, this.length);
  }

  /** @param unit a code unit, or code point, that JSON escapes where it must and only there */
  character(unit: number): void {
    this.room(6);
    const { bytes } = this;
    let at = this.length;
    if (unit >= 0x20 && unit < 0x80) {
      if (unit === QUOTE || unit === BACKSLASH) bytes[at++] = BACKSLASH;
      bytes[at++] = unit;
    } else if (unit >= 0xd800 && unit <= 0xdfff) {
      // One half of a character.
      bytes[at++] = BACKSLASH;
      bytes[at++] = LETTER_U;
      for (let shift = 12; shift >= 0; shift -= 4) bytes[at++] = HEX.charCodeAt((unit >> shift) & 0xf);
    } else if (unit < 0x20) {
      at += bytes.write(JSON.stringify(String.fromCharCode(unit)).slice(1, -1), at, 'latin1');
    } else if (unit < 0x800) {
      bytes[at++] = 0xc0 | (unit >> 6);
      bytes[at++] = 0x80 | (unit & 0x3f);
    } else {
      if (unit < 0x10000) bytes[at++] = 0xe0 | (unit >> 12);
      else {
        bytes[at++] = 0xf0 | (unit >> 18);
        bytes[at++] = 0x80 | ((unit >> 12) & 0x3f);
      }
      bytes[at++] = 0x80 | ((unit >> 6) & 0x3f);
      bytes[at++] = 0x80 | (unit & 0x3f);
    }
    this.length = at;
  }

  /** Whether the member that begins here has this name, given with its quotes. */
  isNamed(start: number, name: Buffer): boolean {
    for (let i = 0; i < name.length; i++) if (this.bytes[start + i] !== name[i]) return false;
    return true;
  }

  /**
   * Puts the members that begin at `starts[first…]` and end with the text in order of their names; of a name that stands
   * twice the last one stays. False where that is too much.
   */
  sort(starts: readonly number[], first: number): boolean {
    let rising = true;
    for (let i = first + 1; i < starts.length && rising; i++)
      rising = this.#compare(starts[i - 1] as number, starts[i] as number) < 0;
    return rising || this.#reorder(starts, first);
  }

  #reorder(starts: readonly number[], first: number): boolean {
    const count = starts.length - first;
    const begin = starts[first] as number;
    this.#moved += this.length - begin;
    if (count > UNSORTED_LIMIT) return false;
    const order = this.#ordered(starts, first, count);
    if (this.#scratch.length < this.length - begin)
      this.#scratch = Buffer.allocUnsafeSlow(Math.max(this.#scratch.length * 2, this.length - begin));
    let at = 0;
    for (let i = 0; i < count; i++) {
      const member = order[i] as number;
      const start = starts[member] as number;
      const next = i + 1 < count ? (starts[order[i + 1] as number] as number) : -1;
      if (next !== -1 && this.#compare(start, next) === 0) continue;
      const end = member + 1 < starts.length ? (starts[member + 1] as number) - 1 : this.length;
      if (at > 0) this.#scratch[at++] = COMMA;
      at = copyBytes(this.bytes, start, end, this.#scratch, at);
    }
    this.length = copyBytes(this.#scratch, 0, at, this.bytes, begin);
    return true;
  }

  /** Of text of this length no more was copied than what is bearable. */
  bearable(textBytes: number): boolean {
    return this.#moved <= COPIED_BYTES + COPIES_LIMIT * textBytes;
  }

  #ordered(starts: readonly number[], first: number, count: number): readonly number[] {
    if (count > FEW_MEMBERS) {
      const members = Array.from({ length: count }, (_, i) => first + i);
      return members.sort((one, other) => this.#compare(starts[one] as number, starts[other] as number));
    }
    const order = this.#order;
    for (let i = 0; i < count; i++) {
      let at = i;
      const start = starts[first + i] as number;
      for (; at > 0 && this.#compare(starts[order[at - 1] as number] as number, start) > 0; at--)
        order[at] = order[at - 1] as number;
      order[at] = first + i;
    }
    return order;
  }

  /** Names as `<` compares their texts: by UTF-16 code units. */
  #compare(one: number, other: number): number {
    const { bytes } = this;
    for (let i = one + 1, j = other + 1; ; i++, j++) {
      const a = bytes[i] as number;
      const b = bytes[j] as number;
      if (a !== b) {
        if (a === QUOTE) return -1;
        if (b === QUOTE) return 1;
        if (a !== BACKSLASH && b !== BACKSLASH && (a < 0xee || b < 0xee)) return a - b;
        return this.#unitAt(i) - this.#unitAt(j) || this.#compareTexts(one, other);
      }
      if (a === QUOTE) return 0;
      if (a !== BACKSLASH) continue;
      if (bytes[i + 1] !== bytes[j + 1]) return this.#unitAt(i) - this.#unitAt(j);
      i++;
      j++;
    }
  }

  #unitAt(at: number): number {
    const { bytes } = this;
    const lead = bytes[at] as number;
    const next = bytes[at + 1] as number;
    if (lead === BACKSLASH)
      return next === LETTER_U
        ? Number.parseInt(bytes.toString('latin1', at + 2, at + 6), 16)
        : (ESCAPES.get(next) as number);
    if (lead < 0xe0) return lead < 0x80 ? lead : ((lead & 0x1f) << 6) | (next & 0x3f);
    const third = bytes[at + 2] as number;
    if (lead < 0xf0) return ((lead & 0x0f) << 12) | ((next & 0x3f) << 6) | (third & 0x3f);
    const point = ((lead & 0x07) << 18) | ((next & 0x3f) << 12) | ((third & 0x3f) << 6);
    return 0xd800 + ((point - 0x10000) >> 10);
  }

  #compareTexts(one: number, other: number): number {
    const [a, b] = [this.#nameAt(one), this.#nameAt(other)];
    return a < b ? -1 : Number(a > b);
  }

  #nameAt(start: number): string {
    let end = start + 1;
    while (this.bytes[end] !== QUOTE) end += this.bytes[end] === BACKSLASH ? 2 : 1;
    return JSON.parse(this.bytes.toString('utf8', start, end + 1)) as string;
  }
}

function copyBytes(source: Buffer, from: number, to: number, target: Buffer, at: number): number {
  if (to - from >= NATIVE_COPY_BYTES) return at + source.copy(target, at, from, to);
  let end = at;
  for (let i = from; i < to; i++) target[end++] = source[i] as number;
  return end;
}
