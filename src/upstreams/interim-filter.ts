import type { Socket } from 'node:net';

const HEAD_END = Buffer.from('\r\n\r\n');
/** As far as the first digit of the status. */
const BEGINNING = Buffer.from('HTTP/1.1 1');
const MINOR = 7;
const STATUS = 9;

/**
 * Takes interim answers (1xx) out of what a provider sends before its answer. A server may send `100 Continue` unasked
 * (RFC 9110 §15.2), and the HTTP library closes a socket that does. Sits in the `read` of one socket and lives as long
 * as that; looks at the first bytes of each answer only, holds back no more than a head, and changes nothing else.
 */
export class InterimFilter {
  #looking = true;
  #held: Buffer | null = null;
  #seen = false;

  constructor(
    socket: Socket,
    private readonly limitBytes: number,
  ) {
    const read = socket.read.bind(socket) as (size?: number) => Buffer | null;
    // Trap: with a size it is Node that reads on, for itself; it must see the stream as it is.
    const filtered = (size?: number): Buffer | null =>
      this.#looking && size === undefined ? this.#look(read) : read(size);
    socket.read = filtered;
  }

  /** Whether the beginning of an interim answer came since the last request. */
  get seen(): boolean {
    return this.#seen;
  }

  /** A request is sent: what comes next may begin with interim answers. */
  expectAnswer(): void {
    this.#looking = true;
    this.#seen = false;
  }

  #look(read: () => Buffer | null): Buffer | null {
    for (;;) {
      const piece = read();
      if (piece === null) return null;
      const bytes = this.#held === null ? piece : Buffer.concat([this.#held, piece]);
      this.#held = null;
      const rest = this.#withoutInterim(bytes);
      if (rest !== null) return rest;
    }
  }

  /** What is left for the parser; null where more must come first. */
  #withoutInterim(bytes: Buffer): Buffer | null {
    let rest = bytes;
    while (rest.length > 0 && mayBeInterim(rest)) {
      this.#seen = true;
      const end = rest.indexOf(HEAD_END);
      // The parser refuses these, and says so at once.
      if (hasBareLineFeed(rest, end)) break;
      if (end < 0) {
        if (rest.length > this.limitBytes) break;
        this.#held = rest;
        return null;
      }
      rest = rest.subarray(end + HEAD_END.length);
    }
    if (rest.length === 0) return null;
    this.#looking = false;
    return rest;
  }
}

/** Also true for too few bytes to tell. 101 is none: nobody asked to switch protocols, which is for the parser to say. */
function mayBeInterim(bytes: Buffer): boolean {
  // Nearly every answer is told by this one byte.
  if (bytes.length > STATUS && bytes[STATUS] !== BEGINNING[STATUS]) return false;
  const { length } = bytes;
  for (let i = 0; i < length && i < BEGINNING.length; i++) {
    if (bytes[i] !== BEGINNING[i] && !(i === MINOR && bytes[i] === 0x30)) return false;
  }
  return bytes.toString('latin1', STATUS, STATUS + 3) !== '101';
}

/** Before `end`, or anywhere where that is negative. */
function hasBareLineFeed(bytes: Buffer, end: number): boolean {
  let at = bytes.indexOf(0x0a);
  while (at >= 0 && (end < 0 || at < end)) {
    if (bytes[at - 1] !== 0x0d) return true;
    at = bytes.indexOf(0x0a, at + 1);
  }
  return false;
}
