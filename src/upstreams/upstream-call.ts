import type { Dispatcher } from 'undici';
import { endsWithConnection, type UpstreamHeaders } from '../common/http/response-headers.js';
import type { Connection } from './connection.js';
import type { ProviderClient } from './provider-client.js';
import {
  describeTransportError,
  isStaleSocketError,
  tellingError,
  ProxyError,
  type TransportFailure,
} from './transport-failure.js';
import { errors } from './undici.js';

export interface UpstreamRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** Flat list of names and values. */
  readonly headers: string[];
  /** The body in parts; null for none. Parts can be sent again. */
  readonly body: readonly Buffer[] | null;
  readonly bodyBytes: number;
}

/** Told what comes of a call, in order: a head, data, then exactly one of end or failure; nothing after an abort. */
export interface AnswerListener {
  onHead(status: number, headers: UpstreamHeaders): void;
  /** False asks for a pause until {@link UpstreamCall.resume}. */
  onData(chunk: Buffer): boolean;
  onEnd(): void;
  onFailure(failure: TransportFailure): void;
}

const PROXY_AUTHENTICATION_REQUIRED = 407;

/** Bodies up to this size are joined and written in one piece; larger ones are handed on in parts, never copied. */
const JOIN_LIMIT_BYTES = 64 * 1024;

/**
 * One request to a provider on one leased connection, with one silent retry where a reused socket turns out to be
 * closed. `over` is called once, when the answer has cleanly ended or the socket has really closed: that is when the
 * provider is free again.
 */
export class UpstreamCall implements Dispatcher.DispatchHandler {
  #connection: Connection;
  #controller: Dispatcher.DispatchController | null = null;
  #reused: boolean;
  #retried = false;
  #sawByte = false;
  #sent = false;
  #endsWithConnection = false;
  #done = false;
  /** Why HTTP cannot carry the request. */
  #refusal: Error | null = null;

  constructor(
    private readonly client: ProviderClient,
    private request: UpstreamRequest | null,
    private readonly listener: AnswerListener,
    private readonly over: () => void,
  ) {
    this.#connection = client.take();
    this.#reused = this.#connection.open;
  }

  /** Sends the request. Throws, with the connection closed, for a path or header that HTTP cannot carry. */
  start(): void {
    const { request } = this;
    if (request === null) throw new Error('a call was started after its answer had begun');
    const { body, bodyBytes, headers, method, path } = request;
    const { absoluteForm } = this.client;
    const options = {
      method,
      path: absoluteForm === null ? path : absoluteForm.origin + path,
      headers: absoluteForm === null ? headers : [...headers, ...absoluteForm.headers],
      body: null as unknown as Buffer,
    };
    if (body !== null) {
      if (body.length === 1) options.body = body[0] as Buffer;
      else if (bodyBytes <= JOIN_LIMIT_BYTES) options.body = Buffer.concat(body as Buffer[], bodyBytes);
      // The library takes any iterable of buffers, its types do not say so.
      else options.body = body as unknown as Buffer;
    }
    this.#connection.dispatch(options, this);
    if (this.#refusal === null) return;
    this.#done = true;
    this.#connection.destroy(this.over);
    throw this.#refusal;
  }

  /** True when any byte of an answer has come. */
  get answered(): boolean {
    return this.#sawByte || this.#connection.interimSeen;
  }

  /** True when the request, or a part of it, has left on a connection that stood. */
  get sent(): boolean {
    return this.#sent;
  }

  /** Ends the call: the socket is closed, then `over` is called. The listener hears no more. */
  abort(): void {
    if (this.#done) return;
    this.#done = true;
    this.#connection.destroy(this.over);
  }

  resume(): void {
    // Trap: the parser cannot go on while it is reading another connection, which may be where this comes from.
    queueMicrotask(() => this.#controller?.resume());
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.#sent = true;
  }

  onResponseStarted(): void {
    this.#sawByte = true;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: UpstreamHeaders): void {
    // Nobody reads them, and they would stay as long as the answer: a kilobyte of each open stream.
    controller.rawHeaders = null;
    if (status < 200 || this.#done) return;
    // It is never sent again: its bytes need not live as long as a stream.
    this.request = null;
    this.#endsWithConnection = endsWithConnection(headers);
    // No provider asks for the credentials of a proxy: this is the proxy's own answer.
    if (status === PROXY_AUTHENTICATION_REQUIRED && this.client.absoluteForm !== null) {
      this.#fail(new ProxyError(`proxy answered ${status}`));
      return;
    }
    this.listener.onHead(status, headers);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#done) return;
    if (!this.listener.onData(chunk)) controller.pause();
  }

  onResponseEnd(): void {
    if (this.#done) return;
    // Trap: a body that the connection's end delimits looks complete to the parser when a reset cuts it.
    if (this.#endsWithConnection && this.#connection.socketError !== null) {
      this.#fail(this.#connection.socketError);
      return;
    }
    this.#done = true;
    this.client.giveBack(this.#connection);
    this.over();
    this.listener.onEnd();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#done) return;
    // Told while it is being dispatched: no byte was sent, and no provider is to blame.
    if (error instanceof errors.InvalidArgumentError) {
      this.#refusal = error;
      return;
    }
    if (this.#reused && !this.#retried && !this.answered && isStaleSocketError(error)) {
      this.#retryOnFreshSocket();
      return;
    }
    this.#fail(error);
  }

  #fail(error: unknown): void {
    this.#done = true;
    const failure = describeTransportError(tellingError(error, this.#connection.socketError));
    this.#connection.destroy(() => {
      this.over();
      this.listener.onFailure(failure);
    });
  }

  /** Neither an attempt nor a failure. */
  #retryOnFreshSocket(): void {
    this.#retried = true;
    this.#reused = false;
    this.#sent = false;
    this.#connection.destroy(() => {
      if (this.#done) return;
      this.#connection = this.client.take(true);
      this.start();
    });
  }
}
