import type { Socket } from 'node:net';

const HEAD_END = Buffer.from('\r\n\r\n');
const STATUS_LINE = /^HTTP\/1\.[01] ([1-9]\d\d)[ \r]/;

/** What an answer turned out to be; null where there is none that could be read. */
export interface FinalHead {
  readonly status: number;
  /** What came behind it. */
  readonly rest: Buffer;
}

export type HeadResult = FinalHead | 'closed' | 'malformed' | 'too large';

/**
 * Reads the head that follows interim answers (1xx) to a CONNECT. Trap: Node takes the first head for the answer, whatever
 * its status, and gives the socket away with it. Calls back once; holds no more than the limit, and no time of its own.
 *
 * @param first what came behind the interim head
 */
export function readBehindInterim(
  socket: Socket,
  first: Buffer,
  limitBytes: number,
  done: (result: HeadResult) => void,
): void {
  let held = first;
  let skipped = 0;
  const settle = (result: HeadResult): void => {
    socket.off('readable', onReadable);
    socket.off('end', onClosed);
    socket.off('close', onClosed);
    done(result);
  };
  const onClosed = (): void => settle('closed');
  const onReadable = (): void => {
    for (;;) {
      const found = look();
      if (found !== null) {
        settle(found);
        return;
      }
      const piece = socket.read() as Buffer | null;
      if (piece === null) return;
      held = Buffer.concat([held, piece]);
    }
  };
  const look = (): HeadResult | null => {
    for (let end = held.indexOf(HEAD_END); end >= 0; end = held.indexOf(HEAD_END)) {
      const status = Number(STATUS_LINE.exec(held.toString('latin1', 0, 13))?.[1]);
      if (Number.isNaN(status)) return 'malformed';
      const rest = held.subarray(end + HEAD_END.length);
      // 101 is none: nobody asked to switch protocols.
      if (status === 101 || status >= 200) return { status, rest };
      skipped += held.length - rest.length;
      held = rest;
    }
    return skipped + held.length > limitBytes ? 'too large' : null;
  };
  // Who closes says so even where all was read before.
  socket.on('error', () => {});
  socket.on('end', onClosed);
  socket.on('close', onClosed);
  socket.on('readable', onReadable);
  onReadable();
}
