import type { IncomingMessage } from 'node:http';

/** What is left of a body that was refused is read so far that an ordinary client gets to read the answer… */
const LIMIT_BYTES = 64 * 1024 * 1024;
/** …and no longer than this: whoever still sends then does not listen. */
const LIMIT_MS = 30_000;

/** Reads the rest of a body away, within bounds; beyond them the connection is closed. The answer is on its way already. */
export function readAway(request: IncomingMessage, limitBytes = LIMIT_BYTES, limitMs = LIMIT_MS): void {
  if (request.complete || request.destroyed) return;
  let bytes = 0;
  const close = () => void request.socket.destroy();
  const timer = setTimeout(close, limitMs);
  timer.unref();
  const over = () => clearTimeout(timer);
  // Trap: a request whose connection breaks in its body may never close itself.
  request.socket.once('close', over);
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > limitBytes) close();
  });
  request.once('end', over);
  request.resume();
}
