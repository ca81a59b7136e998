import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';
import type { ProxyConfig } from '../config/gateway-config.js';
import { type HeadResult, readBehindInterim } from './behind-interim.js';
import { describeTransportError, ProxyError } from './transport-failure.js';

const NO_ANSWER = 'proxy closed the connection without an answer to CONNECT';
const IN_ITS_ANSWER = 'proxy, in its answer to CONNECT:';
const FAULTS = { malformed: 'malformed HTTP', 'too large': 'heads beyond the limit' } as const;

/** As undici's connectors really are: they return the socket while it still connects. */
export type Connector = (options: buildConnector.Options, callback: buildConnector.Callback) => Socket;

export interface TunnelOptions {
  readonly proxy: ProxyConfig;
  /** Connects to the proxy; without a time limit of its own. */
  readonly toProxy: Connector;
  /** Makes TLS with the provider over a socket; without a time limit of its own. */
  readonly toProvider: Connector;
  /** For all of it: the connection to the proxy, its answer, the TLS handshake with the provider. */
  readonly timeoutMs: number;
  /** Of the proxy's answer to CONNECT. */
  readonly headLimitBytes: number;
}

/**
 * A connector that reaches an https provider through a forward proxy (RFC 9110 §9.3.6). It returns the socket to the
 * proxy: what runs inside the tunnel ends with it, so that closing it closes everything.
 */
export function tunnelConnector(options: TunnelOptions): Connector {
  return (target, callback) => new Tunnel(options, target, callback).open();
}

/** One tunnel while it is being opened. Calls back once. */
class Tunnel {
  #phase = 'connecting to the proxy';
  #timer: NodeJS.Timeout | null = null;
  #settled = false;

  constructor(
    private readonly options: TunnelOptions,
    private readonly target: buildConnector.Options,
    private readonly callback: buildConnector.Callback,
  ) {}

  open(): Socket {
    const { timeoutMs, toProxy } = this.options;
    const socket = toProxy(this.target, (...[error]) => {
      if (error === null) this.#ask(socket);
      else this.#fail(ProxyError.from(error));
    });
    this.#timer = setTimeout(() => {
      this.#fail(new ProxyError(`connect timeout, ${this.#phase}`));
      socket.destroy();
    }, timeoutMs);
    // Closed by us while it connects: nobody else would say so.
    socket.once('close', () => this.#stopTimer());
    return socket;
  }

  #ask(socket: Socket): void {
    this.#phase = 'waiting for the answer of the proxy to CONNECT';
    const { headLimitBytes, proxy } = this.options;
    const { hostname, port } = this.target;
    const authority = `${hostname.includes(':') ? `[${hostname}]` : hostname}:${port === '' ? '443' : port}`;
    const connect: ClientRequest = request({
      method: 'CONNECT',
      path: authority,
      headers: {
        host: authority,
        ...(proxy.authorization === null ? {} : { 'proxy-authorization': proxy.authorization }),
      },
      createConnection: () => socket,
      maxHeaderSize: headLimitBytes,
    });
    // A tunnel is no message: it is the proxy's business when it ends.
    connect.removeHeader('connection');
    connect.once('connect', (answer: IncomingMessage, _socket: Socket, head: Buffer) => {
      const status = answer.statusCode ?? 0;
      if (status >= 200 || status === 101) this.#answered(socket, status, head);
      else readBehindInterim(socket, head, headLimitBytes, (result) => this.#finallyAnswered(socket, result));
    });
    connect.on('error', (error) => {
      this.#fail(failedAnswer(error));
      socket.destroy();
    });
    connect.end();
  }

  #answered(socket: Socket, status: number, rest: Buffer): void {
    if (status >= 200 && status <= 299) {
      if (rest.length > 0) socket.unshift(rest);
      this.#secure(socket);
      return;
    }
    this.#fail(new ProxyError(`proxy answered ${status} to CONNECT`));
    socket.destroy();
  }

  #finallyAnswered(socket: Socket, result: HeadResult): void {
    if (typeof result === 'object') {
      this.#answered(socket, result.status, result.rest);
      return;
    }
    const reason = result === 'closed' ? NO_ANSWER : `${IN_ITS_ANSWER} ${FAULTS[result]}`;
    this.#fail(new ProxyError(reason));
    socket.destroy();
  }

  #secure(socket: Socket): void {
    this.#phase = 'during the TLS handshake with the provider';
    const secure = this.options.toProvider({ ...this.target, httpSocket: socket }, (...result) => {
      if (this.#settled) return;
      this.#settle();
      this.callback(...result);
    });
    // Trap: the inner socket closes after the outer one, and only it knows why.
    secure.once('close', () => this.#fail(new ProxyError('connection closed during the TLS handshake')));
  }

  #fail(error: ProxyError): void {
    if (this.#settled) return;
    this.#settle();
    this.callback(error, null);
  }

  #settle(): void {
    this.#settled = true;
    this.#stopTimer();
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}

function failedAnswer(error: Error): ProxyError {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ECONNRESET' || code === 'EPIPE') return new ProxyError(NO_ANSWER);
  return new ProxyError(`${IN_ITS_ANSWER} ${describeTransportError(error).reason}`);
}
