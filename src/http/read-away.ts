import type { IncomingMessage, ServerResponse } from 'node:http';

/** What is left of a body that was refused is read so far that an ordinary client gets to read the answer… */
const REFUSED_BYTES = 64 * 1024 * 1024;
/** …and no longer than this: whoever still sends then does not listen. */
export const LIMIT_MS = 30_000;
/** Of a body where none belongs, such as that of a GET: a small one lets the connection stay. */
const UNWANTED_BYTES = 64 * 1024;
const WITH_BODY: ReadonlySet<string | undefined> = new Set(['POST', 'PUT', 'PATCH']);
/** How long a connection stays that is not read any more: what it was answered is on its way. */
const LINGER_MS = 1000;

/**
 * Reads the rest of a body away, within bounds. Beyond them nothing more is read, and the connection ends behind the answer, which
 * may still have to be given. Of a request without a body nothing is done.
 */
export function readAway(
  response: ServerResponse,
  limitBytes = WITH_BODY.has(response.req.method) ? REFUSED_BYTES : UNWANTED_BYTES,
  limitMs = LIMIT_MS,
): void {
  const { req: request } = response;
  if (request.complete || request.destroyed || !hasBody(request)) return;
  let bytes = 0;
  const { socket } = request;
  const destroy = () => void socket.destroy();
  let timer = setTimeout(destroy, limitMs);
  timer.unref();
  // Trap: a connection outlives its requests, and would keep each of them by a listener that is left on it.
  const over = () => {
    clearTimeout(timer);
    socket.off('close', over);
  };
  // Trap: a request whose connection breaks in its body may never close itself.
  socket.once('close', over);
  // Trap: a socket that is closed while bytes of the client are unread is reset, and takes the answer with it.
  const end = () => {
    clearTimeout(timer);
    timer = setTimeout(destroy, LINGER_MS);
    timer.unref();
    socket.end();
  };
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= limitBytes || request.isPaused()) return;
    request.pause();
    if (response.writableFinished) end();
    // Trap: this answer may wait behind another one of the same connection, which must not be cut.
    else response.once('finish', end);
  });
  request.once('end', over);
  request.resume();
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}
