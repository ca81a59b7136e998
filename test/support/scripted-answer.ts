import type { Socket } from 'node:net';
import type { ReceivedRequest } from './received-request.js';

export type HeaderList = Readonly<Record<string, string | readonly string[]>>;
export type Framing = 'chunked' | 'length' | 'close';

/** The provider's side of one exchange: writes any bytes at any time. Lives for one request of a {@link ReceivedRequest}. */
export class ScriptedAnswer {
  #framing: Framing = 'chunked';

  constructor(
    readonly socket: Socket,
    private readonly request: ReceivedRequest,
  ) {}

  /** Bytes as they are, below HTTP. Settles once they are with the operating system. */
  async raw(bytes: Buffer | string): Promise<void> {
    if (this.socket.destroyed) return;
    await new Promise<void>((resolve) => this.socket.write(bytes, () => resolve()));
  }

  head(status = 200, headers: HeaderList = {}, framing: Framing = 'chunked'): Promise<void> {
    this.#framing = framing;
    let head = `HTTP/1.1 ${status} Scripted\r\n`;
    for (const [name, values] of Object.entries(headers)) {
      for (const value of Array.isArray(values) ? (values as string[]) : [values as string]) {
        head += `${name}: ${value}\r\n`;
      }
    }
    if (framing === 'chunked') head += 'transfer-encoding: chunked\r\n';
    if (framing === 'close') head += 'connection: close\r\n';
    return this.raw(Buffer.from(`${head}\r\n`, 'latin1'));
  }

  sseHead(headers: HeaderList = {}, framing: Framing = 'chunked'): Promise<void> {
    return this.head(200, { 'content-type': 'text/event-stream', ...headers }, framing);
  }

  /** A piece of the body in the framing that `head` announced. */
  write(piece: Buffer | string): Promise<void> {
    const bytes = Buffer.from(piece as string);
    if (this.#framing !== 'chunked') return this.raw(bytes);
    if (bytes.length === 0) return Promise.resolve();
    return this.raw(
      Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]),
    );
  }

  async end(piece: Buffer | string = ''): Promise<void> {
    await this.write(piece);
    if (this.#framing === 'chunked') await this.raw('0\r\n\r\n');
    this.request.answered();
    if (this.#framing === 'close') this.socket.end();
  }

  /** A whole answer with a content length. */
  async send(status: number, body: Buffer | string, headers: HeaderList = {}): Promise<void> {
    const bytes = Buffer.from(body as string);
    await this.head(status, { ...headers, 'content-length': String(bytes.length) }, 'length');
    if (bytes.length > 0) await this.raw(bytes);
    this.request.answered();
  }

  json(status: number, body: unknown, headers: HeaderList = {}): Promise<void> {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return this.send(status, text, { 'content-type': 'application/json', ...headers });
  }

  error(status: number, headers: HeaderList = {}): Promise<void> {
    const error = { message: 'the provider says no', type: 'provider_error', param: null, code: 'p' };
    return this.json(status, { error }, headers);
  }

  /** A whole stream, piece by piece. */
  async sse(pieces: readonly (Buffer | string)[], headers: HeaderList = {}, framing: Framing = 'chunked') {
    await this.sseHead(headers, framing);
    for (const piece of pieces) await this.write(piece);
    await this.end();
  }

  reset(): void {
    this.socket.resetAndDestroy();
  }

  destroy(): void {
    this.socket.destroy();
  }
}
