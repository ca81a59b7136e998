import { fstatSync, write, writeSync } from 'node:fs';
import { Socket } from 'node:net';

/** Lines waiting for a slow reader beyond this are dropped and counted. */
const BACKLOG_LIMIT_CHARACTERS = 4 * 1024 * 1024;
/** Lines are gathered for so long and written in one piece: a write costs as much as a whole event of a stream. */
const GATHER_MS = 100;
/** … or until there are so many. */
const GATHER_CHARACTERS = 256 * 1024;
const RETRY_MS = 20;

/**
 * Where log lines go: a file descriptor, written asynchronously and in batches. A reader that stalls, a full disk or a
 * closed pipe never blocks or fails the service: lines are dropped and counted. Lives as long as the process.
 */
export class LogDestination {
  #pending: string[] = [];
  #pendingCharacters = 0;
  #timer: NodeJS.Timeout | null = null;
  #writing = false;
  #dropped = 0;
  /** Trap: a blocking write into a stalled pipe would pin a thread that the exit then waits for; a socket never blocks. */
  readonly #pipe: Socket | null;

  constructor(private readonly fd: number) {
    this.#pipe = isPipe(fd) ? new Socket({ fd, readable: false, writable: true }) : null;
    this.#pipe?.on('error', () => {});
    this.#pipe?.unref();
  }

  /** Lines lost so far. */
  get dropped(): number {
    return this.#dropped;
  }

  write(line: string): void {
    if (this.#pendingCharacters > BACKLOG_LIMIT_CHARACTERS || this.#pipe?.destroyed) {
      this.#dropped++;
      return;
    }
    this.#pending.push(line);
    this.#pendingCharacters += line.length;
    if (this.#pendingCharacters >= GATHER_CHARACTERS) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), GATHER_MS);
  }

  /** Writes what is waiting, giving a stalled reader no longer than `timeoutMs`. */
  async close(timeoutMs: number): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while ((this.#pending.length > 0 || this.#writing) && performance.now() < deadline) {
      this.#flush();
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  /** Writes what is waiting at once, where that cannot block. For the moment before a hard exit. */
  flushSync(): void {
    if (this.#pipe !== null) return;
    const batch = this.#take();
    try {
      if (batch !== '') writeSync(this.fd, batch);
    } catch {
      // Nobody is left to tell.
    }
  }

  #flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#writing) return;
    const lines = this.#pending.length;
    const batch = this.#take();
    if (batch === '') return;
    this.#writing = true;
    const done = (error?: Error | null) => {
      this.#writing = false;
      if (error) this.#dropped += lines;
      if (this.#pending.length > 0) this.#timer ??= setTimeout(() => this.#flush(), GATHER_MS);
    };
    if (this.#pipe !== null) this.#pipe.write(batch, done);
    else this.#writeAll(Buffer.from(batch), done);
  }

  #writeAll(bytes: Buffer, done: (error?: Error | null) => void): void {
    write(this.fd, bytes, 0, bytes.length, null, (error, written) => {
      if (error?.code === 'EAGAIN') setTimeout(() => this.#writeAll(bytes, done), RETRY_MS);
      else if (error || written === bytes.length) done(error);
      else this.#writeAll(bytes.subarray(written), done);
    });
  }

  #take(): string {
    const batch = this.#pending.join('');
    this.#pending = [];
    this.#pendingCharacters = 0;
    return batch;
  }
}

function isPipe(fd: number): boolean {
  try {
    const stat = fstatSync(fd);
    return stat.isFIFO() || stat.isSocket();
  } catch {
    return false;
  }
}
