import { append, TagScanner, type TextPiece } from '../common/text/tag-scanner.js';
import { EMPTY_STRING, jsonText, mayHoldTag } from './json-text.js';

/** A piece of an answer as the bytes of a JSON string. */
export interface ThinkPiece {
  readonly thought: boolean;
  readonly value: Buffer;
}

/** What one delta's content becomes; `same` = exactly what it was. */
export interface SplitContent {
  readonly pieces: readonly ThinkPiece[];
  readonly same: boolean;
}

const SAME: SplitContent = { pieces: [], same: true };

/**
 * The think state of one choice of one stream: where its text stands, and what is needed to send what is held back
 * in an event of its own. Lives as long as the stream; knows nothing of the other choices.
 */
export class ChoiceSplitter {
  readonly #scanner = new TagScanner();
  /** The first `role` has passed. */
  roleSeen = false;
  /** What an event of its own needs of the last one of this choice (see `frameOf`); null while nothing is held back. */
  frame: string | null = null;
  /** Trap: texts, not buffers: a few bytes of a small buffer keep a whole pool of them in memory. */
  readonly #index: string | undefined;

  /** @param index as in the events; undefined where they name none */
  constructor(
    index: Buffer | undefined,
    private readonly strip: boolean,
  ) {
    this.#index = index?.toString('latin1');
  }

  get index(): Buffer | undefined {
    return this.#index === undefined ? undefined : Buffer.from(this.#index, 'latin1');
  }

  /** Every event matters: inside a thought, or with text held back. */
  get busy(): boolean {
    return this.#scanner.inside || this.#scanner.held !== '';
  }

  /** All that comes is thought, up to the next `<`. */
  get inThought(): boolean {
    return this.#scanner.inside && this.#scanner.held === '';
  }

  get holds(): boolean {
    return this.#scanner.held !== '';
  }

  /**
   * @param raw the JSON string that came as content
   * @param ending nothing of this text may be held back beyond this event
   */
  split(raw: Buffer, text: () => string | undefined, ending: boolean): SplitContent {
    const scanner = this.#scanner;
    if (scanner.held === '' && !mayHoldTag(raw)) {
      if (!scanner.inside || raw.length === EMPTY_STRING.length) return SAME;
      return { pieces: this.strip ? [] : [{ thought: true, value: raw }], same: false };
    }
    const content = text();
    if (content === undefined) return SAME;
    const pieces = scanner.push(content);
    if (ending) for (const piece of scanner.flush()) append(pieces, piece.thought, piece.text);
    const only = pieces.length <= 1 ? pieces[0] : undefined;
    if (only === undefined ? content === '' && pieces.length === 0 : !only.thought && only.text === content)
      return SAME;
    return { pieces: this.#encode(pieces), same: false };
  }

  /** What was held back, as text after all. */
  flush(): readonly ThinkPiece[] {
    return this.#encode(this.#scanner.flush());
  }

  #encode(pieces: readonly TextPiece[]): ThinkPiece[] {
    if (!this.strip) return pieces.map(({ thought, text }) => ({ thought, value: jsonText(text) }));
    const text = pieces.map((piece) => (piece.thought ? '' : piece.text)).join('');
    return text === '' ? [] : [{ thought: false, value: jsonText(text) }];
  }
}
