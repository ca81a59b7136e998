export type EchoVerdict =
  | { readonly kind: 'undecided' }
  /** So many characters from the beginning of what was received are an echo; 0 = none is. */
  | { readonly kind: 'decided'; readonly echoLength: number };

const UNDECIDED: EchoVerdict = { kind: 'undecided' };

/**
 * Tells an exact echo of the text that was to be continued from a continuation. Some servers send the beginning they
 * were given once more before they go on. Owns what was received until it is decided; only a whole echo counts, since
 * a part of one may just as well be new text.
 */
export class EchoFilter {
  #received = '';

  /** @param echoes what an echo may be; empty ones never are */
  constructor(private readonly echoes: readonly string[]) {}

  push(text: string): EchoVerdict {
    this.#received += text;
    const open = this.echoes.some(
      (echo) => echo.length > this.#received.length && echo.startsWith(this.#received),
    );
    return open ? UNDECIDED : this.decide();
  }

  /** Nothing more will come that could decide it. */
  decide(): EchoVerdict {
    let echoLength = 0;
    for (const echo of this.echoes) {
      if (echo.length > echoLength && this.#received.startsWith(echo)) echoLength = echo.length;
    }
    return { kind: 'decided', echoLength };
  }
}
