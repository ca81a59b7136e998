import type { Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { OutputWatch } from './secret-watch.js';
import { parseSse, type SeenEvent } from './sse-text.js';
import { waitFor, within } from './wait-for.js';

/** How an answer ended: as its framing says, by the end of the connection before that, by a reset, or by us. */
export type Ending = 'complete' | 'cut' | 'reset' | 'left';

export interface RawRequest {
  readonly method?: string;
  readonly path?: string;
  /** `null` leaves a header out. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | null>>;
  /** Objects are sent as JSON. */
  readonly body?: unknown;
  /** Sends the head, and the body by hand: {@link RawConnection.socket}. */
  readonly holdBody?: boolean;
  /** Keeps no bytes of the answer, only their number: for large ones. */
  readonly discard?: boolean;
}

/** One answer as it comes: its head, its body so far, its end. */
export class RawAnswer {
  status = 0;
  rawHead = '';
  headerLines: [name: string, value: string][] = [];
  readonly interim: number[] = [];
  readonly pieces: { readonly at: number; readonly bytes: Buffer }[] = [];
  size = 0;
  ending: Ending | null = null;
  readonly #head = Promise.withResolvers<void>();
  readonly #end = Promise.withResolvers<void>();

  constructor(
    readonly connection: RawConnection,
    readonly discard: boolean,
  ) {}

  header(name: string): string | undefined {
    const values = this.headerLines.filter(([key]) => key === name).map(([, value]) => value);
    return values.length === 0 ? undefined : values.join(', ');
  }

  get body(): Buffer {
    return Buffer.concat(this.pieces.map(({ bytes }) => bytes));
  }

  get text(): string {
    return this.body.toString('utf8');
  }

  get json(): Record<string, unknown> {
    return JSON.parse(this.text) as Record<string, unknown>;
  }

  get events(): SeenEvent[] {
    return parseSse(this.text);
  }

  /** Settles with the head of the answer, or the end of the connection. */
  async head(): Promise<this> {
    await within(this.#head.promise, 'the head of an answer', 15_000);
    return this;
  }

  async end(): Promise<this> {
    await within(
      this.#end.promise,
      `the end of an answer (so far ${this.status} ${this.text.slice(0, 300)})`,
      15_000,
    );
    return this;
  }

  /** Waits until the body holds the text. */
  async saw(text: string): Promise<this> {
    await waitFor(() => this.text.includes(text) || this.ending !== null, `the answer held ${text}`);
    if (!this.text.includes(text))
      throw new Error(`the answer ended (${this.ending}) without ${text}: ${this.text}`);
    return this;
  }

  /** The client goes away. */
  leave(): void {
    this.connection.socket.resetAndDestroy();
    this.settle('left');
  }

  gotHead(): void {
    this.#head.resolve();
  }

  take(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.size += bytes.length;
    if (!this.discard) this.pieces.push({ at: performance.now(), bytes });
  }

  settle(ending: Ending): void {
    if (this.ending !== null) return;
    this.ending = ending;
    this.#head.resolve();
    this.#end.resolve();
  }
}

type Reading = 'head' | 'length' | 'chunk-size' | 'chunk' | 'trailer' | 'to-end';

/** A connection to the service below any HTTP library: bytes in pieces, pauses, half-closes, aborts. */
export class RawConnection {
  readonly socket: Socket;
  closed = false;
  readonly #waiting: { answer: RawAnswer; bodiless: boolean }[] = [];
  #buffer: Buffer = Buffer.alloc(0);
  #reading: Reading = 'head';
  #left = 0;
  #failed = false;
  readonly #watch = new OutputWatch('an answer');

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.on('error', () => (this.#failed = true));
    this.socket.on('data', (bytes) => {
      this.#watch.see(bytes);
      this.#buffer = this.#buffer.length === 0 ? bytes : Buffer.concat([this.#buffer, bytes]);
      while (this.#step());
    });
    this.socket.on('end', () => this.#over());
    this.socket.on('close', () => {
      this.closed = true;
      this.#over();
    });
  }

  send(request: RawRequest): RawAnswer {
    const { body } = request;
    const method = request.method ?? (body === undefined && !request.holdBody ? 'GET' : 'POST');
    const bytes = bodyBytes(body);
    const headers: Record<string, string | readonly string[] | null> = {
      host: '127.0.0.1',
      ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
      ...(bytes === null || request.holdBody ? {} : { 'content-length': String(bytes.length) }),
      ...request.headers,
    };
    let head = `${method} ${request.path ?? '/v1/chat/completions'} HTTP/1.1\r\n`;
    for (const [name, value] of Object.entries(headers)) {
      if (value === null) continue;
      for (const one of typeof value === 'string' ? [value] : value) head += `${name}: ${one}\r\n`;
    }
    const answer = this.expect(method === 'HEAD', request.discard ?? false);
    const headBytes = Buffer.from(`${head}\r\n`, 'latin1');
    this.socket.write(bytes === null || request.holdBody ? headBytes : Buffer.concat([headBytes, bytes]));
    return answer;
  }

  /** An answer to bytes that the test writes itself. */
  expect(bodiless = false, discard = false): RawAnswer {
    const answer = new RawAnswer(this, discard);
    this.#waiting.push({ answer, bodiless });
    if (this.closed) answer.settle('cut');
    return answer;
  }

  close(): void {
    this.socket.destroy();
  }

  #over(): void {
    const ending: Ending = this.#failed ? 'reset' : this.#reading === 'to-end' ? 'complete' : 'cut';
    for (const { answer } of this.#waiting.splice(0)) answer.settle(ending);
  }

  /** Reads one element; false where more bytes are needed. */
  #step(): boolean {
    const current = this.#waiting[0];
    if (current === undefined) return false;
    switch (this.#reading) {
      case 'head':
        return this.#readHead(current);
      case 'chunk-size': {
        const line = this.#line();
        if (line === null) return false;
        this.#left = Number.parseInt(line, 16);
        this.#reading = this.#left === 0 ? 'trailer' : 'chunk';
        return true;
      }
      case 'trailer': {
        const line = this.#line();
        if (line === null) return false;
        if (line === '') this.#finish();
        return true;
      }
      default:
        return this.#readBytes(current.answer);
    }
  }

  #readBytes(answer: RawAnswer): boolean {
    const count =
      this.#reading === 'to-end' ? this.#buffer.length : Math.min(this.#left, this.#buffer.length);
    if (count > 0) answer.take(Buffer.from(this.#buffer.subarray(0, count)));
    this.#buffer = this.#buffer.subarray(count);
    this.#left -= count;
    if (this.#reading === 'to-end' || this.#left > 0) return false;
    if (this.#reading === 'length') {
      this.#finish();
      return true;
    }
    if (this.#buffer.length < 2) return false;
    this.#buffer = this.#buffer.subarray(2);
    this.#reading = 'chunk-size';
    return true;
  }

  #readHead({ answer, bodiless }: { answer: RawAnswer; bodiless: boolean }): boolean {
    const at = this.#buffer.indexOf('\r\n\r\n');
    if (at < 0) return false;
    const head = this.#buffer.toString('latin1', 0, at);
    this.#buffer = this.#buffer.subarray(at + 4);
    const [first = '', ...lines] = head.split('\r\n');
    const status = Number(first.split(' ')[1]);
    if (status < 200) {
      answer.interim.push(status);
      return true;
    }
    answer.status = status;
    answer.rawHead = head;
    answer.headerLines = lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    });
    answer.gotHead();
    const length = answer.header('content-length');
    if (bodiless || status === 204 || status === 304 || length === '0') this.#finish();
    else if (answer.header('transfer-encoding') !== undefined) this.#reading = 'chunk-size';
    else if (length !== undefined) {
      this.#left = Number(length);
      this.#reading = 'length';
    } else this.#reading = 'to-end';
    return true;
  }

  #line(): string | null {
    const at = this.#buffer.indexOf('\r\n');
    if (at < 0) return null;
    const line = this.#buffer.toString('latin1', 0, at);
    this.#buffer = this.#buffer.subarray(at + 2);
    return line;
  }

  #finish(): void {
    this.#reading = 'head';
    this.#waiting.shift()?.answer.settle('complete');
  }
}

function bodyBytes(body: unknown): Buffer | null {
  if (body === undefined) return null;
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

/** Lets a server listen, and connects to it. */
export async function connectTo(server: Server): Promise<RawConnection> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return new RawConnection((server.address() as AddressInfo).port);
}
