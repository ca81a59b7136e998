import { fstatSync, write, writeSync } from 'node:fs';
import { Socket } from 'node:net';

/** Lines waiting for a slow reader beyond this are dropped and counted. */
const BACKLOG_LIMIT_BYTES = 4 * 1024 * 1024;
/** Lines are gathered for so long and written in one piece: a write costs as much as a whole event of a stream. */
const GATHER_MS = 100;
/** … or until so much of this is filled that the next line may not find room. */
const BATCH_BYTES = 256 * 1024;
/** Of one character of a text, at most. */
const CHARACTER_BYTES = 3;
const RETRY_MS = 20;

interface Batch {
  readonly buffer: Buffer;
  bytes: number;
  lines: number;
}

/**
 * Where log lines go: a file descriptor, written asynchronously and in batches. A reader that stalls, a full disk or a
 * closed pipe never blocks or fails the service: lines are dropped and counted. Lives as long as the process. Trap: lines are
 * copied at once. A line is a text of dozens of joined pieces, and as such would outlive the collections of the young
 * generation while it waits.
 */
export class LogDestination {
  /** Takes the next lines. */
  #open: Batch | null = null;
  /** Full, or due, in order. */
  readonly #sealed: Batch[] = [];
  #waitingBytes = 0;
  /** One that was written, to be filled again. */
  #spare: Buffer | null = null;
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
    if (this.#waitingBytes > BACKLOG_LIMIT_BYTES || this.#pipe?.destroyed) {
      this.#dropped++;
      return;
    }
    const batch = this.#roomFor(line);
    const bytes = batch.buffer.write(line, batch.bytes);
    batch.bytes += bytes;
    batch.lines++;
    this.#waitingBytes += bytes;
    if (this.#sealed.length > 0) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), GATHER_MS);
  }

  /** Writes what is waiting, giving a stalled reader no longer than `timeoutMs`. */
  async close(timeoutMs: number): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while ((this.#waitingBytes > 0 || this.#writing) && performance.now() < deadline) {
      this.#flush();
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  /** Writes what is waiting at once, where that cannot block. For the moment before a hard exit. */
  flushSync(): void {
    if (this.#pipe !== null) return;
    try {
      for (let batch = this.#take(); batch !== null; batch = this.#take())
        writeSync(this.fd, batch.buffer, 0, batch.bytes);
    } catch {
      // Nobody is left to tell.
    }
  }

  #roomFor(line: string): Batch {
    const most = line.length * CHARACTER_BYTES;
    if (this.#open !== null && this.#open.buffer.length - this.#open.bytes < most) this.#seal();
    if (this.#open === null) {
      const buffer = most > BATCH_BYTES ? Buffer.allocUnsafeSlow(most) : this.#emptyBuffer();
      this.#open = { buffer, bytes: 0, lines: 0 };
    }
    return this.#open;
  }

  #emptyBuffer(): Buffer {
    const buffer = this.#spare ?? Buffer.allocUnsafeSlow(BATCH_BYTES);
    this.#spare = null;
    return buffer;
  }

  #seal(): void {
    if (this.#open !== null) this.#sealed.push(this.#open);
    this.#open = null;
  }

  #flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#writing) return;
    const batch = this.#take();
    if (batch === null) return;
    const { buffer, bytes, lines } = batch;
    this.#writing = true;
    const done = (error?: Error | null) => {
      this.#writing = false;
      if (error) this.#dropped += lines;
      if (buffer.length === BATCH_BYTES) this.#spare ??= buffer;
      if (this.#sealed.length > 0) this.#flush();
      else if (this.#open !== null) this.#timer ??= setTimeout(() => this.#flush(), GATHER_MS);
    };
    const written = buffer.subarray(0, bytes);
    if (this.#pipe !== null) this.#pipe.write(written, done);
    else this.#writeAll(written, done);
  }

  #writeAll(bytes: Buffer, done: (error?: Error | null) => void): void {
    write(this.fd, bytes, 0, bytes.length, null, (error, written) => {
      if (error?.code === 'EAGAIN') setTimeout(() => this.#writeAll(bytes, done), RETRY_MS);
      else if (error || written === bytes.length) done(error);
      else this.#writeAll(bytes.subarray(written), done);
    });
  }

  /** The next one to be written; null where nothing waits. */
  #take(): Batch | null {
    if (this.#sealed.length === 0) this.#seal();
    const batch = this.#sealed.shift() ?? null;
    if (batch !== null) this.#waitingBytes -= batch.bytes;
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
