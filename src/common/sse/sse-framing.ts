const LF = 10;
const CR = 13;

/**
 * Knows where one event stream stands between its events: owns the few bits that a cut between two chunks must not
 * lose. Lives as long as the stream, never keeps its bytes. Lines end in LF, CR or CRLF; an empty line ends an event.
 * An event that ends in CR is over at once (a CR-only stream must not wait for the next chunk); an LF that follows
 * belongs to that line end and opens nothing.
 */
export class SseFraming {
  #lineEmpty = true;
  #afterCr = false;
  #open = false;
  // One search for CR serves every line of a chunk (most streams have none); searching anew per event is quadratic.
  #searched: Buffer | null = null;
  #carriageReturn = -1;

  /** Bytes of an event have passed and its blank line has not. */
  get open(): boolean {
    return this.#open;
  }

  /** What passed ends in the CR of an event that is over: an LF that comes now belongs to its line end. */
  get endsInCr(): boolean {
    return this.#afterCr && !this.#open;
  }

  /** Takes in the LF that came apart from its CR, where `chunk` begins with it. */
  takeLateLineFeed(chunk: Buffer): boolean {
    if (!this.endsInCr || chunk[0] !== LF) return false;
    this.#afterCr = false;
    return true;
  }

  /** Index behind the next blank line at or after `from`, or -1: then the whole rest has been taken in. */
  next(chunk: Buffer, from: number): number {
    let at = from;
    while (at < chunk.length) {
      const byte = chunk[at]!;
      if (byte === LF && this.#afterCr) {
        this.#afterCr = false;
        at++;
        continue;
      }
      this.#afterCr = false;
      if (byte !== LF && byte !== CR) {
        this.#open = true;
        this.#lineEmpty = false;
        at = firstOf(chunk.indexOf(LF, at + 1), this.#nextCarriageReturn(chunk, at + 1), chunk.length);
        if (at === chunk.length) break;
      }
      if (this.#endLine(chunk, at)) return at + 1 + this.#takeLineFeed(chunk, at + 1);
      at++;
    }
    this.#searched = null;
    return -1;
  }

  /** Takes a whole chunk in by looking at its last bytes only. True when it ends on a boundary between events. */
  skip(chunk: Buffer): boolean {
    const end = chunk.length;
    if (end === 0) return !this.#open;
    const last = chunk[end - 1]!;
    if (last !== LF && last !== CR) {
      this.#lineEmpty = false;
      this.#afterCr = false;
      this.#open = true;
      return false;
    }
    const start = last === LF && chunk[end - 2] === CR ? end - 2 : end - 1;
    if (start === 0) return this.#walk(chunk);
    const before = chunk[start - 1]!;
    this.#lineEmpty = true;
    this.#afterCr = last === CR;
    this.#open = before !== LF && before !== CR;
    return !this.#open;
  }

  #walk(chunk: Buffer): boolean {
    let at = 0;
    while (at >= 0 && at < chunk.length) at = this.next(chunk, at);
    this.#searched = null;
    return !this.#open;
  }

  #nextCarriageReturn(chunk: Buffer, from: number): number {
    if (this.#searched !== chunk || (this.#carriageReturn >= 0 && this.#carriageReturn < from)) {
      this.#searched = chunk;
      this.#carriageReturn = chunk.indexOf(CR, from);
    }
    return this.#carriageReturn;
  }

  #endLine(chunk: Buffer, at: number): boolean {
    this.#afterCr = chunk[at] === CR;
    const ended = this.#lineEmpty;
    this.#lineEmpty = true;
    this.#open = !ended;
    return ended;
  }

  #takeLineFeed(chunk: Buffer, at: number): number {
    if (!this.#afterCr || chunk[at] !== LF) return 0;
    this.#afterCr = false;
    return 1;
  }
}

function firstOf(one: number, other: number, otherwise: number): number {
  if (one < 0) return other < 0 ? otherwise : other;
  return other < 0 ? one : Math.min(one, other);
}
