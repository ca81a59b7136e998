import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** How many requests of one connection are served at a time, the one whose answer is being sent aside. */
const AHEAD = 7;
/** With more than these waiting, nothing more is read. */
const WAITING = 64;
/** A client whose bytes are not read cannot be seen leaving, so now and then they are, up to this many waiting. */
const MOST_WAITING = 4096;
const LOOK_MS = 1000;

const TURNS = Symbol('llm-proxy:turns');

type PipelinedSocket = Socket & { [TURNS]?: Turns };

/**
 * Starts a request, at once where its connection is not busy with many. Trap: Node hands over all requests of a packet
 * at once, and each answer behind the first is kept in memory. So of a client that pipelines only a few are served
 * ahead, the others wait. All other clients pay a look at a property.
 */
export function inTurn(socket: Socket, response: ServerResponse, start: () => void): void {
  // Only an answer that waits behind another one has no socket yet.
  if (response.socket !== null) {
    start();
    return;
  }
  const marked = socket as PipelinedSocket;
  const turns = (marked[TURNS] ??= new Turns(socket));
  turns.take({ response, start });
}

interface Turn {
  readonly response: ServerResponse;
  readonly start: () => void;
}

/** The requests of a connection that pipelines, and whether it is read. Lives as long as the connection. */
class Turns {
  readonly #waiting: Turn[] = [];
  /** Requests that are served while their answers wait behind another one. */
  #ahead = 0;
  #paused = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly socket: Socket) {
    // Trap: Node itself lets a connection go on with the end of each request that it has read.
    socket.on('resume', () => {
      if (this.#paused) socket.pause();
    });
  }

  take(turn: Turn): void {
    if (this.#ahead < AHEAD) {
      this.#begin(turn);
      return;
    }
    this.#waiting.push(turn);
    if (this.#waiting.length > WAITING && !this.#paused) this.#pause();
  }

  #begin({ response, start }: Turn): void {
    this.#ahead++;
    response.once('socket', () => {
      this.#ahead--;
      const next = this.#waiting.shift();
      if (this.#paused && this.#waiting.length <= WAITING) this.#resume();
      if (next !== undefined) this.#begin(next);
    });
    start();
  }

  #pause(): void {
    this.#paused = true;
    this.socket.pause();
    if (this.#waiting.length > MOST_WAITING) return;
    this.#timer = setTimeout(() => this.#resume(), LOOK_MS);
    this.#timer.unref();
  }

  #resume(): void {
    this.#paused = false;
    clearTimeout(this.#timer);
    this.socket.resume();
  }
}
