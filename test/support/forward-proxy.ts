import {
  createServer as createHttpServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface ForwardProxyOptions {
  /** Asked for with Basic authentication. */
  readonly credentials?: { readonly user: string; readonly password: string };
  /** Speaks TLS itself. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Heads that come before the answer to CONNECT: at once, and again together with it. */
  readonly interim?: string;
  /** Ports on the loopback for `host:port` of names that only the proxy knows. */
  readonly hosts?: Readonly<Record<string, number>>;
}

/** A forward proxy as companies have one: CONNECT tunnels, and http requests in absolute form. Lives for one test. */
export class ForwardProxy {
  /** Authorities asked for by CONNECT, granted or not. */
  readonly connects: string[] = [];
  /** Targets of requests in absolute form. */
  readonly forwarded: string[] = [];
  /** Heads of all requests, as lists of names and values. */
  readonly heads: (readonly string[])[] = [];
  /** Connections of clients. */
  readonly sockets = new Set<Socket>();
  /** Takes over a CONNECT. */
  onConnect: ((socket: Socket, authority: string) => void) | null = null;
  /** Takes over a request in absolute form. */
  onForward: ((request: IncomingMessage, response: ServerResponse) => void) | null = null;
  readonly #server: Server;

  private constructor(private readonly options: ForwardProxyOptions) {
    this.#server = options.tls === undefined ? createHttpServer() : createHttpsServer({ ...options.tls });
    this.#server.on(options.tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
      this.sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => this.sockets.delete(socket));
    });
    this.#server.on('connect', (incoming: IncomingMessage, socket: Socket, head: Buffer) =>
      this.#tunnel(incoming, socket, head),
    );
    this.#server.on('request', (incoming, response) => this.#forward(incoming, response));
  }

  static async start(options: ForwardProxyOptions = {}): Promise<ForwardProxy> {
    const proxy = new ForwardProxy(options);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => proxy.stop());
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** `user:password@` where it asks for them. */
  get url(): string {
    const { credentials, tls } = this.options;
    const pair =
      credentials === undefined
        ? ''
        : `${encodeURIComponent(credentials.user)}:${encodeURIComponent(credentials.password)}@`;
    return `${tls === undefined ? 'http' : 'https'}://${pair}127.0.0.1:${this.port}`;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #allows({ headers }: IncomingMessage): boolean {
    const { credentials } = this.options;
    if (credentials === undefined) return true;
    const pair = Buffer.from(`${credentials.user}:${credentials.password}`).toString('base64');
    return headers['proxy-authorization'] === `Basic ${pair}`;
  }

  #portOf(authority: string): number | null {
    const known = this.options.hosts?.[authority];
    if (known !== undefined) return known;
    const own = /^127\.0\.0\.1:(\d+)$/.exec(authority)?.[1];
    return own === undefined ? null : Number(own);
  }

  #tunnel(incoming: IncomingMessage, socket: Socket, head: Buffer): void {
    const authority = incoming.url ?? '';
    this.connects.push(authority);
    this.heads.push(incoming.rawHeaders);
    if (this.onConnect !== null) {
      // What nobody reads never ends.
      socket.on('end', () => socket.destroy()).resume();
      this.onConnect(socket, authority);
      return;
    }
    if (!this.#allows(incoming)) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n\r\n');
      return;
    }
    const port = this.#portOf(authority);
    if (port === null) {
      socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
      return;
    }
    const { interim = '' } = this.options;
    if (interim !== '') socket.write(interim);
    const far = connect({ port, host: '127.0.0.1', noDelay: true }, () => {
      socket.write(`${interim}HTTP/1.1 200 Connection established\r\n\r\n`);
      if (head.length > 0) far.write(head);
      far.pipe(socket);
      socket.pipe(far);
    });
    far.on('error', () => socket.destroy());
    far.on('close', () => socket.destroy());
    socket.on('close', () => far.destroy());
  }

  #forward(incoming: IncomingMessage, response: ServerResponse): void {
    const target = incoming.url ?? '';
    this.forwarded.push(target);
    this.heads.push(incoming.rawHeaders);
    if (this.onForward !== null) {
      this.onForward(incoming, response);
      return;
    }
    if (!this.#allows(incoming)) {
      response.writeHead(407, { 'proxy-authenticate': 'Basic' }).end('no');
      return;
    }
    const url = new URL(target);
    const port = this.#portOf(`${url.hostname}:${url.port === '' ? '80' : url.port}`);
    const { 'proxy-authorization': _mine, ...headers } = incoming.headers;
    const far = request(
      { port, host: '127.0.0.1', method: incoming.method, path: url.pathname + url.search, headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
        answer.pipe(response);
        answer.on('error', () => response.destroy());
      },
    );
    far.on('error', () => response.destroy());
    response.on('close', () => far.destroy());
    incoming.pipe(far);
  }
}
