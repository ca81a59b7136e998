/** npm's copy of a Ctrl-C comes 1 to 3 ms after the terminal's; nobody presses a key twice this fast. */
const COPY_MS = 50;

/**
 * What the signals that stop the process ask for: the first drains, a second one ends at once. Lives as long as the
 * process. Trap: under npm one Ctrl-C (or the end of a terminal, SIGHUP) can arrive twice, from the terminal and from npm, which
 * passes on what it gets itself; only there, and only once, a second one at the same moment is taken for that copy.
 */
export class StopSignals {
  #first: { readonly signal: string; readonly at: number } | null = null;
  #copyDue: boolean;

  constructor(
    npmInTerminal: boolean,
    private readonly now: () => number,
  ) {
    this.#copyDue = npmInTerminal;
  }

  heard(signal: string): 'drain' | 'end' | 'ignore' {
    const at = this.now();
    if (this.#first === null) {
      this.#first = { signal, at };
      return 'drain';
    }
    const copy = this.#copyDue && signal !== 'SIGTERM' && signal === this.#first.signal;
    this.#copyDue = false;
    return copy && at - this.#first.at < COPY_MS ? 'ignore' : 'end';
  }
}
