import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/**
 * The way of a replica to its Redis: it can be cut, stand still as for a process that is frozen, lead to another Redis, and keep
 * from the replica which one it is.
 */
export class RedisProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #cut = false;
  #still = false;
  #hides = false;
  #wanted = '\0';
  /** What replicas said with that text in it: {@link listenFor}. */
  readonly heard: Buffer[] = [];

  private constructor(private port: number) {
    this.#server = createServer((inner) => {
      if (this.#cut) {
        inner.destroy();
        return;
      }
      const outer = connect(this.port, '127.0.0.1');
      for (const [from, to] of [
        [inner, outer],
        [outer, inner],
      ] as const) {
        this.#sockets.add(from);
        from.on('data', (bytes: Buffer) => {
          if (from === inner && bytes.includes(this.#wanted)) this.heard.push(bytes);
          to.write(from === outer ? this.#shown(bytes) : bytes);
        });
        from.on('error', () => {});
        from.on('close', () => {
          this.#sockets.delete(from);
          to.destroy();
        });
        if (this.#still) from.pause();
      }
    });
  }

  static async start(port: number): Promise<RedisProxy> {
    const proxy = new RedisProxy(port);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Nothing gets through, in neither direction, and nothing is lost. */
  freeze(): void {
    this.#still = true;
    for (const socket of this.#sockets) socket.pause();
  }

  thaw(): void {
    this.#still = false;
    for (const socket of this.#sockets) socket.resume();
  }

  /** No connection, and no new one. */
  cut(): void {
    this.#cut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  /** All connections break; new ones may come. */
  break(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  listenFor(text: string): void {
    this.#wanted = text;
  }

  /** Says it again, on a connection of its own, and gives what Redis answers. */
  async repeat(bytes: Buffer): Promise<string> {
    const socket = connect(this.port, '127.0.0.1');
    socket.write(bytes);
    const answer = await new Promise<string>((resolve) =>
      socket.once('data', (data) => resolve(String(data))),
    );
    socket.destroy();
    return answer;
  }

  /** From now on to another Redis. */
  lead(port: number): void {
    this.port = port;
    this.break();
  }

  /** As some managed ones do: their `INFO` has no run_id. */
  hideIdentity(): void {
    this.#hides = true;
  }

  mend(): void {
    this.#cut = false;
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** As long as before: its length stands in front of it. */
  #shown(bytes: Buffer): Buffer {
    if (!this.#hides) return bytes;
    return Buffer.from(bytes.toString('latin1').replaceAll('\nrun_id:', '\nxxx_xx:'), 'latin1');
  }
}
