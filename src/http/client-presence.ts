import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const PRESENT = Symbol('llm-proxy:present');

/** More than one only where requests are pipelined. */
type WatchedSocket = Socket & { [PRESENT]?: ClientPresence[] };

/**
 * Whether the client of one request is still there. Ends once, when its answer is complete or its connection closed.
 * Trap: a request "closes" as soon as its body is read, and a response that waits behind another one on the same
 * connection never hears of the connection's end; so response and socket are watched, the socket by one listener,
 * however many requests it carries.
 */
export class ClientPresence {
  /** Called at once when the client leaves before its answer was given to the network in full. */
  onLeft: (() => void) | null = null;
  #over = false;
  readonly #others: ClientPresence[];

  constructor(
    request: IncomingMessage,
    private readonly response: ServerResponse,
    private readonly ended: () => void,
  ) {
    this.#others = presencesOf(request.socket);
    this.#others.push(this);
    response.on('close', () => this.end());
    // Trap: without a listener a late error of the response would end the process.
    response.on('error', () => {});
  }

  get left(): boolean {
    return this.#over && !this.response.writableFinished;
  }

  /** Its answer may go on, where it is the one that is being sent. */
  drained(socket: Socket): void {
    if (this.response.socket === socket) this.response.emit('drain');
  }

  end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#others.splice(this.#others.indexOf(this), 1);
    this.ended();
    const left = this.onLeft;
    // A kept connection remembers its last request: it must not keep the exchange alive with it.
    this.onLeft = null;
    if (!this.response.writableFinished) left?.();
  }
}

/** Whether a request for a model is open on this connection. */
export function hasOpenRequests(socket: Socket): boolean {
  return ((socket as WatchedSocket)[PRESENT]?.length ?? 0) > 0;
}

/** For a connection whose answers Node tells nothing any more. */
export function drained(socket: Socket): void {
  for (const presence of (socket as WatchedSocket)[PRESENT]?.slice() ?? []) presence.drained(socket);
}

function presencesOf(socket: WatchedSocket): ClientPresence[] {
  const known = socket[PRESENT];
  if (known !== undefined) return known;
  const presences: ClientPresence[] = [];
  socket[PRESENT] = presences;
  const gone = () => {
    for (const presence of presences.slice()) presence.end();
  };
  socket.once('close', gone);
  socket.once('end', () => {
    // A FIN is taken as leaving. What is left to say (that a stream was cut) still goes out to a half-open client.
    gone();
    socket.destroySoon();
  });
  return presences;
}
