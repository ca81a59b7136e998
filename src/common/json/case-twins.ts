/** What UTF-8 makes of ſ and of the sign for kelvin where a text has one character for each byte, and what an escape makes of them. */
const LONG_S = /\u017f|\u00c5\u00bf/g;
const KELVIN = /\u212a|\u00e2\u0084\u00aa/g;
const NOT_ASCII = /[^\0-\x7f]/;

/**
 * Tells keys that equal one of a few names but for case. Readers that ignore the case of keys, as Go's do by Unicode's
 * simple folding, take such a key for the name. Lives as long as the service; changes nothing.
 */
export class CaseTwins {
  readonly #names: ReadonlySet<string>;
  /** The first letters of those names that may have so many bytes. */
  readonly #firstBySize: readonly (readonly number[])[];

  /** @param names of ASCII, in lower case */
  constructor(readonly names: readonly string[]) {
    this.#names = new Set(names);
    const firstBySize: number[][] = [];
    for (const name of names) {
      // Each `s` may come as two bytes, each `k` as three.
      const longest = name.length + name.split('s').length - 1 + 2 * (name.split('k').length - 1);
      for (let size = name.length; size <= longest; size++)
        (firstBySize[size] ??= []).push(name.charCodeAt(0));
    }
    this.#firstBySize = firstBySize;
  }

  /** Whether a key without escapes can be one, by the number of its bytes and the first of them. */
  fits(bytes: number, first: number): boolean {
    const letters = this.#firstBySize[bytes];
    // Lower case differs from upper case in one bit; other bytes may be a ſ.
    return letters !== undefined && (first > 0x7f || letters.includes(first | 0x20));
  }

  /** The name that this key, decoded or with one character for each byte, would be taken for; null for the name itself. */
  of(key: string): string | null {
    if (this.#names.has(key)) return null;
    const ascii = NOT_ASCII.test(key) ? key.replace(LONG_S, 's').replace(KELVIN, 'k') : key;
    const folded = ascii.toLowerCase();
    return this.#names.has(folded) ? folded : null;
  }
}
