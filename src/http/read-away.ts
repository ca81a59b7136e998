import type { IncomingMessage } from 'node:http';

/** What is left of a body that was refused is read so far that an ordinary client gets to read the answer… */
const LIMIT_BYTES = 64 * 1024 * 1024;
/** …and no longer than this: whoever still sends then does not listen. */
export const LIMIT_MS = 30_000;

/** Reads the rest of a body away, within bounds; beyond them the connection is closed. The answer is on its way already. */
export function readAway(request: IncomingMessage, limitBytes = LIMIT_BYTES, limitMs = LIMIT_MS): void {
  if (request.complete || request.destroyed) return;
  let bytes = 0;
  const { socket } = request;
  const close = () => void socket.destroy();
  const timer = setTimeout(close, limitMs);
  timer.unref();
  // Trap: a connection outlives its requests, and would keep each of them by a listener that is left on it.
  const over = () => {
    clearTimeout(timer);
    socket.off('close', over);
  };
  // Trap: a request whose connection breaks in its body may never close itself.
  socket.once('close', over);
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > limitBytes) close();
  });
  request.once('end', over);
  request.resume();
}
