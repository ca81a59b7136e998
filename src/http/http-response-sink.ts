import type { ServerResponse } from 'node:http';
import type { GatewayError } from '../common/errors/gateway-error.js';
import type { ResponseSink } from '../gateway/response-sink.js';
import { sendError } from './error-response.js';

/**
 * A response of Node's HTTP server as a {@link ResponseSink}. Lives for one answer. Trap: after the head nothing may
 * throw, and a response whose client has gone swallows everything.
 */
export class HttpResponseSink implements ResponseSink {
  #drainListener: (() => void) | null = null;
  #listening = false;

  constructor(
    private readonly response: ServerResponse,
    private readonly edgeHeaders: readonly string[],
  ) {}

  set onDrain(listener: (() => void) | null) {
    this.#drainListener = listener;
  }

  head(status: number, headers: string[]): void {
    if (this.response.headersSent || this.response.destroyed) return;
    headers.push(...this.edgeHeaders);
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
      more = response.write(bytes);
    } else {
      response.cork();
      more = true;
      for (const part of bytes) more = response.write(part);
      response.uncork();
    }
    if (!more) this.#listen();
    return more;
  }

  end(bytes?: Buffer | readonly Buffer[]): void {
    const { response } = this;
    if (bytes === undefined) response.end();
    else if (Buffer.isBuffer(bytes)) response.end(bytes);
    else if (bytes.length === 1) response.end(bytes[0]);
    else {
      this.write(bytes);
      response.end();
    }
  }

  endInterrupted(bytes: Buffer): void {
    const { response } = this;
    // Trap: a response that waits behind another one has no socket yet; its request has.
    const { socket } = response.req;
    response.end(bytes, () => socket.destroySoon());
  }

  cut(): void {
    this.response.destroy();
  }

  error(error: GatewayError, headers: string[]): void {
    sendError(this.response, error, [...this.edgeHeaders, ...headers]);
  }

  #listen(): void {
    if (this.#listening) return;
    this.#listening = true;
    this.response.on('drain', () => this.#drainListener?.());
  }
}
