import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { completion, DONE, delta, finish } from './answers.js';
import { ReceivedRequest } from './received-request.js';
import { ScriptedAnswer } from './scripted-answer.js';
import { waitFor } from './wait-for.js';

export type Script = (request: ReceivedRequest, answer: ScriptedAnswer) => unknown;

const HEAD_END = '\r\n\r\n';
const PROBE_TEXT = '2+2=?';

/** What a well-behaved provider does. */
export async function answerWell(request: ReceivedRequest, answer: ScriptedAnswer): Promise<void> {
  const stream = request.body.includes('"stream":true') || request.json['stream'] === true;
  if (stream)
    await answer.sse([delta({ role: 'assistant', content: '' }), delta('hel'), delta('lo'), finish(), DONE]);
  else await answer.json(200, completion());
}

/**
 * A provider on a raw socket: records each request byte for byte and answers with whatever bytes a script writes. The
 * next scripts given by `next` answer one request each, then `always`. Lives for one test.
 */
export class ScriptedUpstream {
  readonly requests: ReceivedRequest[] = [];
  readonly sockets = new Set<Socket>();
  connections = 0;
  /** Most requests that were under way at once. */
  mostAtOnce = 0;
  /** What scripts threw: a mistake of the test. */
  readonly errors: unknown[] = [];
  /** Answers probes; null = probes are answered as any request. */
  onProbe: Script | null = null;
  /** Called with the head, before the body is there. */
  onHead: ((request: ReceivedRequest, socket: Socket) => void) | null = null;
  /** Takes over a fresh connection that is not to speak HTTP. */
  onConnection: ((socket: Socket) => void) | null = null;
  #next: Script[] = [];
  #always: Script = answerWell;
  readonly #server: Server;

  private constructor(private readonly tls: TlsOptions | null) {
    const accept = (socket: Socket) => this.#accept(socket);
    this.#server =
      tls === null
        ? createServer({ noDelay: true }, accept)
        : createTlsServer({ noDelay: true, ...tls }, accept);
  }

  /** With `tls` it speaks TLS; `connections` are then those whose handshake was complete. */
  static async start(tls: TlsOptions | null = null): Promise<ScriptedUpstream> {
    const upstream = new ScriptedUpstream(tls);
    await new Promise<void>((resolve) => upstream.#server.listen(0, '127.0.0.1', resolve));
    return upstream;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `${this.tls === null ? 'http' : 'https'}://127.0.0.1:${this.port}/v1`;
  }

  next(...scripts: Script[]): this {
    this.#next.push(...scripts);
    return this;
  }

  always(script: Script): this {
    this.#always = script;
    return this;
  }

  get last(): ReceivedRequest {
    const last = this.requests.at(-1);
    if (last === undefined) throw new Error('no request reached the upstream');
    return last;
  }

  get probes(): ReceivedRequest[] {
    return this.requests.filter(isProbe);
  }

  get chats(): ReceivedRequest[] {
    return this.requests.filter((request) => !isProbe(request));
  }

  /** Waits for the chat request of this number (from 0). */
  async chat(index: number): Promise<ReceivedRequest> {
    await waitFor(() => this.chats.length > index, `chat request ${index} reached the upstream`);
    return this.chats[index] as ReceivedRequest;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    if (this.errors.length > 0) throw this.errors[0];
  }

  #accept(socket: Socket): void {
    const connection = this.connections++;
    this.sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.sockets.delete(socket));
    if (this.onConnection !== null) {
      this.onConnection(socket);
      return;
    }
    void this.#serve(socket, connection).catch((error: unknown) => {
      if (!socket.destroyed) this.errors.push(error);
    });
  }

  async #serve(socket: Socket, connection: number): Promise<void> {
    const reader = new SocketReader(socket);
    for (;;) {
      const head = await reader.until(HEAD_END);
      if (head === null) return;
      const request = parseHead(head.toString('latin1'), connection);
      const gone = () => request.finish();
      socket.once('end', gone).once('close', gone);
      this.onHead?.(request, socket);
      if (!(await readBody(reader, request))) return;
      this.requests.push(request);
      const under = this.requests.filter(({ over }) => !over).length;
      this.mostAtOnce = Math.max(this.mostAtOnce, under);
      const script = (isProbe(request) && this.onProbe) || this.#next.shift() || this.#always;
      try {
        await script(request, new ScriptedAnswer(socket, request));
      } catch (error) {
        this.errors.push(error);
        socket.destroy();
      }
      await request.closed;
      socket.off('end', gone).off('close', gone);
      if (!request.done) return;
    }
  }
}

function isProbe(request: ReceivedRequest): boolean {
  return request.method === 'GET' || request.body.includes(PROBE_TEXT);
}

function parseHead(head: string, connection: number): ReceivedRequest {
  const [first = '', ...lines] = head.slice(0, -HEAD_END.length).split('\r\n');
  const [method = '', target = ''] = first.split(' ');
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  return new ReceivedRequest(connection, method, target, headers);
}

/** False where the connection ended before the body did. */
async function readBody(reader: SocketReader, request: ReceivedRequest): Promise<boolean> {
  if (request.header('transfer-encoding') === undefined) {
    const body = await reader.bytes(Number(request.header('content-length') ?? 0));
    if (body === null) return false;
    request.add(body);
    return true;
  }
  for (;;) {
    const line = await reader.until('\r\n');
    if (line === null) return false;
    const size = Number.parseInt(line.toString('latin1'), 16);
    const piece = await reader.bytes(size + 2);
    if (piece === null) return false;
    if (size === 0) return true;
    request.add(piece.subarray(0, size));
  }
}

/** Reads a socket by lengths and delimiters. Null = the other side ended first. */
class SocketReader {
  #pieces: Buffer[] = [];
  #length = 0;
  #ended = false;
  #wake: (() => void) | null = null;

  constructor(socket: Socket) {
    socket.on('data', (piece) => {
      this.#pieces.push(piece);
      this.#length += piece.length;
      this.#wake?.();
    });
    const end = () => {
      this.#ended = true;
      this.#wake?.();
    };
    socket.on('end', () => {
      end();
      socket.end();
    });
    socket.on('close', end);
  }

  async until(delimiter: string): Promise<Buffer | null> {
    for (;;) {
      const all = this.#join();
      const at = all.indexOf(delimiter);
      if (at >= 0) return this.#take(at + delimiter.length);
      if (!(await this.#more())) return null;
    }
  }

  async bytes(count: number): Promise<Buffer | null> {
    while (this.#length < count) if (!(await this.#more())) return null;
    return this.#take(count);
  }

  #join(): Buffer {
    if (this.#pieces.length !== 1) this.#pieces = [Buffer.concat(this.#pieces)];
    return this.#pieces[0] as Buffer;
  }

  #take(count: number): Buffer {
    const all = this.#join();
    this.#pieces = [all.subarray(count)];
    this.#length -= count;
    return all.subarray(0, count);
  }

  async #more(): Promise<boolean> {
    if (this.#ended) return false;
    const length = this.#length;
    await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#wake = null;
    return this.#length > length;
  }
}
