import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { hasOpenRequests } from './client-presence.js';
import { edgeContext } from './edge-context.js';
import { LIMIT_MS } from './read-away.js';

/** How long what a client still sends is read away after its last answer. */
const LINGER_MS = 1000;

/** How long a connection stays whose last answer said that it stays, though it must end. */
const FAREWELL_MS = 1000;

const FAREWELL = Symbol('llm-proxy:farewell');
const LAST = Symbol('llm-proxy:last-request');
const ENDS_EARLIER = Symbol('llm-proxy:ends-earlier');

/** The request that came last on a connection; null once no more are taken. */
type MarkedSocket = Socket & {
  [LAST]?: IncomingMessage | null;
  [ENDS_EARLIER]?: boolean;
  [FAREWELL]?: boolean;
};

/** Notes a request as the last one of its connection. False where that is being closed: then it is left alone. */
export function takeRequest(request: IncomingMessage, response: ServerResponse): boolean {
  const socket = request.socket as MarkedSocket;
  if (socket[LAST] === null) return false;
  socket[LAST] = request;
  edgeContext(request).response = response;
  return true;
}

/** Whether nothing came behind this request on its connection. */
export function isLast(request: IncomingMessage): boolean {
  return (request.socket as MarkedSocket)[LAST] === request;
}

/**
 * Takes no more requests on this connection, and lets its end be one that loses no answer. Gives the request that came
 * last; undefined where none came, null where this was said before. Trap: a socket that is closed while bytes of the
 * client are unread is reset, and the reset throws away the answer that the client has not read yet.
 */
export function takeNoMore(socket: Socket): IncomingMessage | null | undefined {
  const marked = socket as MarkedSocket;
  const last = marked[LAST];
  marked[LAST] = null;
  // Node's HTTP server ends connections by this method, and so do we.
  if (last !== null) socket.destroySoon = () => closeGently(socket);
  return last;
}

/** The connection ends with an answer that was given now: what was asked behind it is not served. */
export function endWith(request: IncomingMessage, bodyComes: boolean): void {
  const { socket } = request;
  takeNoMore(socket);
  (socket as MarkedSocket)[ENDS_EARLIER] = true;
  // Who sends a long body reads the answer when it has sent it all.
  if (bodyComes) socket.destroySoon = () => closeGently(socket, request);
}

export function endsEarlier(socket: Socket): boolean {
  return (socket as MarkedSocket)[ENDS_EARLIER] === true;
}

/**
 * The connection ends after an answer whose head has said that it stays. Trap: closed at once, it takes the client's next
 * request with it, which nobody retries. So for a second whoever still asks is served, and told that it ends.
 */
export function endSoon(socket: Socket): void {
  const marked = socket as MarkedSocket;
  if (marked[FAREWELL] === true) return;
  marked[FAREWELL] = true;
  const timer = setInterval(() => {
    const { [LAST]: last } = marked;
    if (hasOpenRequests(socket) || (last !== undefined && last !== null && isServing(last))) return;
    clearInterval(timer);
    // Trap: where no more are taken, the last answer ends the connection, and may stand behind one that is still sent.
    if (last !== null) socket.destroySoon();
  }, FAREWELL_MS);
  timer.unref();
  socket.once('close', () => clearInterval(timer));
}

/** Whether answers from now on are to say that the connection ends with them. */
export function endsSoon(socket: Socket): boolean {
  return (socket as MarkedSocket)[FAREWELL] === true;
}

function isServing(request: IncomingMessage): boolean {
  const { response } = edgeContext(request);
  return response !== null && !response.writableFinished;
}

/** `sending`: a request whose body is still read away, which has limits of its own. */
function closeGently(socket: Socket, sending: IncomingMessage | null = null): void {
  if (socket.destroyed) return;
  const destroy = () => void socket.destroy();
  socket.end();
  if (socket.readableEnded) {
    if (socket.writableFinished) destroy();
    else socket.once('finish', destroy);
    return;
  }
  let timer = setTimeout(destroy, sending === null ? LINGER_MS : LIMIT_MS);
  sending?.once('end', () => {
    clearTimeout(timer);
    timer = setTimeout(destroy, LINGER_MS);
  });
  // It may stand still for requests that had to wait their turn.
  socket.resume();
  socket.once('end', destroy);
  socket.once('close', () => clearTimeout(timer));
}
