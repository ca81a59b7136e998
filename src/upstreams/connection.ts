import type { Socket } from 'node:net';
import type { Dispatcher, buildConnector } from 'undici';
import { InterimFilter } from './interim-filter.js';
import { Client } from './undici.js';

export interface ConnectionOptions {
  readonly origin: string;
  readonly connector: buildConnector.connector;
  readonly keepAliveTimeoutMs: number;
  readonly headLimitBytes: number;
  /** Told when a socket of this connection has closed. */
  readonly closed: (connection: Connection) => void;
}

/**
 * One HTTP/1.1 connection to a provider: an undici client of exactly one socket at a time, carrying one exchange at a
 * time, so that a lease knows its socket, whether it was reused, and when it is really closed. Lives until that socket
 * closes; never retries.
 */
export class Connection {
  readonly #client: Client;
  #socket: Socket | null = null;
  #socketError: Error | null = null;
  #filter: InterimFilter | null = null;

  /** `openedAt` is monotonic. */
  constructor(
    private readonly options: ConnectionOptions,
    readonly openedAt: number,
  ) {
    this.#client = new Client(options.origin, {
      // Trap: with HTTP/2 an abort resets a stream and closes no socket, and requests wait for ALPN.
      allowH2: false,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: options.keepAliveTimeoutMs,
      // A provider's `Keep-Alive: timeout=…` may shorten it, never lengthen it.
      keepAliveMaxTimeout: options.keepAliveTimeoutMs,
      maxHeaderSize: options.headLimitBytes,
      connect: (connectOptions, callback) => this.#watch(options.connector, connectOptions, callback),
    });
  }

  /** True while a socket is open (or opening). */
  get open(): boolean {
    return this.#socket !== null && !this.#socket.destroyed;
  }

  /** The first error that the present socket met, if any: a reset after the head can look like a clean end. */
  get socketError(): Error | null {
    return this.#socketError;
  }

  /** Whether an interim answer came to the present request, or the beginning of one. */
  get interimSeen(): boolean {
    return this.#filter?.seen === true;
  }

  /** Throws for a path or a header that HTTP cannot carry. */
  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#filter?.expectAnswer();
    this.#client.dispatch(options, handler);
  }

  /** Closes the socket, also one that is still connecting; `closed` is called when that has happened. */
  destroy(closed: () => void): void {
    const socket = this.#socket;
    // The promise ends with the socket; a rejection can only repeat what the handler was told.
    this.#client.destroy(new Error('aborted')).catch(() => {});
    if (socket === null || socket.closed) {
      closed();
      return;
    }
    socket.once('close', closed);
    socket.destroy();
  }

  #watch(
    connector: buildConnector.connector,
    options: buildConnector.Options,
    callback: buildConnector.Callback,
  ): Socket | void {
    this.#socketError = null;
    const noteError = (error: Error) => {
      // Trap: what TLS was told is followed by an error that only says that the other side closed.
      this.#socketError ??= error;
    };
    const connected: buildConnector.Callback = (...result) => {
      const [error, ready] = result;
      if (error === null) this.#filter = new InterimFilter(ready as Socket, this.options.headLimitBytes);
      // Inside a tunnel runs a socket of its own: its errors are told there, its end with the one that is watched.
      if (error === null && ready !== this.#socket) ready.on('error', noteError);
      callback(...result);
    };
    const socket = connector(options, connected) as unknown as Socket | undefined;
    if (!socket) return;
    this.#socket = socket;
    socket.on('error', noteError);
    socket.on('close', () => {
      if (this.#socket !== socket) return;
      this.#socket = null;
      this.options.closed(this);
    });
    return socket;
  }
}
