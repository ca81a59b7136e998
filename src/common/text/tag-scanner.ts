/** A stretch of text on one side of the tags. */
export interface TextPiece {
  readonly thought: boolean;
  readonly text: string;
}

const OPEN = '<think>';
const CLOSE = '</think>';

/**
 * Splits a text that arrives in pieces into what stands inside and what stands outside `<think>…</think>`.
 * Owns the state of one text, lives as long as it, never drops a character other than the tags themselves.
 * Only the tag that means something in the present state is looked for: a stray `</think>` outside and a `<think>`
 * inside are text.
 */
export class TagScanner {
  #inside = false;
  #held = '';

  /** Inside a thought. */
  get inside(): boolean {
    return this.#inside;
  }

  /** The tail that may still become the tag; '' when nothing is held back. */
  get held(): string {
    return this.#held;
  }

  /** The pieces that are certain now, in order; neighbours always differ in `thought`, none is empty. */
  push(text: string): TextPiece[] {
    const pieces: TextPiece[] = [];
    const all = this.#held + text;
    let from = 0;
    for (;;) {
      const tag = this.#inside ? CLOSE : OPEN;
      const at = all.indexOf(tag, from);
      if (at < 0) break;
      append(pieces, this.#inside, all.slice(from, at));
      this.#inside = !this.#inside;
      from = at + tag.length;
    }
    const kept = tailThatMayBe(this.#inside ? CLOSE : OPEN, all, from);
    append(pieces, this.#inside, all.slice(from, all.length - kept));
    this.#held = kept === 0 ? '' : all.slice(-kept);
    return pieces;
  }

  /** No more text comes, or what comes next must not be overtaken: the held tail is text after all. */
  flush(): TextPiece[] {
    if (this.#held === '') return [];
    const pieces = [{ thought: this.#inside, text: this.#held }];
    this.#held = '';
    return pieces;
  }
}

/** Joins neighbours of one kind, so that an empty thought does not tear a text apart. */
export function append(pieces: TextPiece[], thought: boolean, text: string): void {
  if (text === '') return;
  const last = pieces.at(-1);
  if (last?.thought === thought) pieces[pieces.length - 1] = { thought, text: last.text + text };
  else pieces.push({ thought, text });
}

/** Length of the longest end of `text` (from `from` on) that is a proper beginning of `tag`. */
function tailThatMayBe(tag: string, text: string, from: number): number {
  const at = text.lastIndexOf('<');
  // Both tags hold a single '<', their first character: only the last one of the text can begin a tag.
  if (at < from || text.length - at >= tag.length) return 0;
  return tag.startsWith(text.slice(at)) ? text.length - at : 0;
}
