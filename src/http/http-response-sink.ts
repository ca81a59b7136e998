import type { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { internalError } from '../common/errors/catalogue.js';
import type { GatewayError } from '../common/errors/gateway-error.js';
import type { ResponseSink } from '../gateway/response-sink.js';
import { endSoon } from './connection-end.js';
import { type Answering, sendError } from './error-response.js';
import { chunkOf, CHUNK_LIMIT_BYTES } from './chunk-text.js';
import { gathered } from './gathered.js';
import { currentTurn, gatherForTurn } from './turn.js';

/** What a socket says whose other end is not there any more. */
const GONE: ReadonlySet<unknown> = new Set(['EPIPE', 'ECONNRESET', 'ECONNABORTED', 'ETIMEDOUT']);
/** Above this the copy costs more than it saves. */
const ONE_PIECE_BYTES = 4096;

/**
 * A response of Node's HTTP server as a {@link ResponseSink}. Lives for one answer. Trap: after the head nothing may
 * throw, and a response whose client has gone swallows everything.
 */
export class HttpResponseSink implements ResponseSink {
  readonly rewrites = false;
  #drainListener: (() => void) | null = null;
  #listening = false;
  /** The first character of the head; 0 before it was looked at. */
  #headStart = 0;
  /** The head is on its way, and what follows it are chunks. */
  #chunked = false;
  /** In which a small chunk was written last, and whether more of it are gathered. */
  #turn = -1;
  #gathers = false;

  constructor(
    private readonly response: ServerResponse,
    private readonly answering: Answering,
  ) {}

  /** Trap: a write that fails at once is told to listeners later only, but the socket knows it by then. */
  get refused(): 'client_gone' | Error | null {
    const { errored } = this.response.req.socket;
    return errored !== null && 'code' in errored && GONE.has(errored.code) ? 'client_gone' : errored;
  }

  set onDrain(listener: (() => void) | null) {
    this.#drainListener = listener;
  }

  head(status: number, headers: string[]): void {
    if (this.response.headersSent || this.response.destroyed) return;
    headers.push(...this.answering.headers);
    this.response.writeHead(status, headers);
  }

  flush(): void {
    this.response.flushHeaders();
  }

  write(bytes: Buffer | readonly Buffer[]): boolean {
    const { response } = this;
    if (response.destroyed) return true;
    let more: boolean;
    if (Buffer.isBuffer(bytes)) {
      more = this.#write(bytes);
    } else {
      // Trap: not corked. A corked write says "wait", and when the uncorking then empties everything at once no
      // drain ever follows, so the answer would stand still for good.
      more = true;
      for (const part of gathered(bytes)) more = this.#write(part);
    }
    if (!more) this.#listen();
    return more;
  }

  end(bytes?: Buffer | readonly Buffer[]): void {
    const { response } = this;
    if (bytes === undefined) response.end();
    else if (Buffer.isBuffer(bytes)) this.#endWith(bytes);
    else if (bytes.length === 1) this.#endWith(bytes[0] as Buffer);
    else {
      this.write(bytes);
      response.end();
    }
  }

  /** As a text of one character a byte a small body leaves in one piece with its head: one system call, no gathering. */
  #endWith(bytes: Buffer): void {
    if (bytes.length <= ONE_PIECE_BYTES) this.response.end(bytes.toString('latin1'), 'latin1');
    else this.response.end(bytes);
  }

  endInterrupted(bytes: Buffer): void {
    const { response } = this;
    // Trap: a response that waits behind another one has no socket yet; its request has.
    const { socket } = response.req;
    response.end(bytes, () => endSoon(socket));
  }

  cut(): void {
    const { response } = this;
    // Trap: in HTTP/1.0 the connection's end is the end of the answer; only a reset tells that this is none.
    if (response.req.httpVersionMinor === 0) response.req.socket.resetAndDestroy();
    else response.destroy();
  }

  error(error: GatewayError, headers: string[]): void {
    sendError(this.response, error, this.answering, headers);
  }

  close(): void {
    const { response } = this;
    if (response.writableEnded || response.destroyed) return;
    try {
      if (response.headersSent) this.cut();
      else sendError(response, internalError(), this.answering);
    } catch {
      // Trap: what went wrong is told already, by whoever called; a client without any end waits for ever.
      response.destroy();
    }
  }

  /**
   * A small chunk is framed here and leaves in one piece: Node's own way takes four writes and a tick for it. Traps: only
   * behind the head, which leaves with Node's own first write; and only on a socket that carries this response already and
   * takes something still, since a write behind its end destroys it.
   */
  #write(bytes: Buffer): boolean {
    const { response } = this;
    if (this.#chunked && bytes.length <= CHUNK_LIMIT_BYTES && bytes.length > 0) {
      const { socket } = response;
      if (socket?.writable === true) {
        this.#gatherBurst(socket);
        // The empty write makes the response say when the socket has drained.
        return socket.write(chunkOf(bytes), 'latin1') || response.write('');
      }
    }
    if (this.#headStart === 0) this.#readHead();
    const more = response.write(bytes);
    // Trap: an injected request has no network, and what passes by its response is lost.
    this.#chunked ||= response.chunkedEncoding && response.socket instanceof Socket;
    return more;
  }

  /** Trap: thousands of chunks may come in one read, and each would be a system call and a packet of its own. */
  #gatherBurst(socket: Socket): void {
    const turn = currentTurn();
    if (turn !== this.#turn) {
      this.#turn = turn;
      this.#gathers = false;
    } else if (!this.#gathers) {
      this.#gathers = true;
      gatherForTurn(socket);
    }
  }

  /**
   * Trap: Node keeps the head of an answer until its end, as a text of fifty joined pieces (a kilobyte and a half) unless
   * somebody reads it: then it becomes one.
   */
  #readHead(): void {
    const { _header: head } = this.response as unknown as { readonly _header?: unknown };
    this.#headStart = typeof head === 'string' ? head.charCodeAt(0) : -1;
  }

  #listen(): void {
    if (this.#listening) return;
    this.#listening = true;
    this.response.on('drain', () => this.#drainListener?.());
  }
}
