// The load generator: raw keep-alive sockets in a closed loop, one request in flight per connection. It reads whole
// answers (content-length and chunked), counts server-sent events, and treats anything odd as an error.
import net from 'node:net';

const HEAD_END = Buffer.from('\r\n\r\n');
const BLANK_LINE = Buffer.from('\n\n');
const STAMP = Buffer.from('"t":');
// Reading is synchronous per socket, so that all sockets may share one buffer: no allocation per read.
const shared = Buffer.allocUnsafeSlow(256 * 1024);
const MAX_ERROR_SAMPLES = 5;
const CONNECTS_AT_ONCE = 100;

/** One request as a single buffer; a head per target, because the port stands in it. */
export function buildRequest({
  port,
  path = '/v1/chat/completions',
  headers = {},
  key = 'client-key',
  body,
}) {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body);
  const extra = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head =
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\n` +
    `accept: */*\r\nauthorization: Bearer ${key}\r\nuser-agent: bench\r\n${extra.join('')}` +
    `content-length: ${bytes.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), bytes]);
}

/**
 * `requests` are sent in turn, each connection starting at its own place. `expectStream` asks for a `[DONE]` at the
 * end, `expectEvents` for a number of events. `paceMs` sends a request every so often instead of in a closed loop.
 */
export class Load {
  completed = 0;
  events = 0;
  errors = 0;
  errorSamples = [];
  /** ms per answer, when `latencies` was asked for. */
  latencies = [];
  /** µs between the sending of an event and its arrival, when `delays` was asked for. */
  delays = [];
  #options;
  #connections = [];
  #running = false;
  #idle = null;
  #inFlight = 0;

  constructor(options) {
    this.#options = { connections: 1, expectStream: false, staggerMs: 0, ...options };
  }

  get options() {
    return this.#options;
  }

  get inFlight() {
    return this.#inFlight;
  }

  get running() {
    return this.#running;
  }

  /** Opens all connections, a few at a time (a listener's backlog is 511 in Node); sends nothing yet. */
  async open() {
    const { connections } = this.#options;
    for (let from = 0; from < connections; from += CONNECTS_AT_ONCE) {
      const count = Math.min(CONNECTS_AT_ONCE, connections - from);
      const batch = Array.from({ length: count }, (_, i) => new Connection(this, from + i));
      this.#connections.push(...batch);
      await Promise.all(batch.map((connection) => connection.connect()));
    }
  }

  start() {
    this.#running = true;
    const { staggerMs } = this.#options;
    const count = this.#connections.length;
    this.#connections.forEach((connection, i) => {
      if (staggerMs === 0) connection.send();
      else setTimeout(() => this.#running && connection.send(), (staggerMs * i) / count);
    });
  }

  /** Sends nothing more, waits for the answers on their way, closes. `abort` does not wait. */
  async stop({ abort = false, timeoutMs = 60_000 } = {}) {
    this.#running = false;
    if (!abort && this.#inFlight > 0) {
      let timer;
      const late = new Promise((resolve) => {
        timer = setTimeout(() => resolve('late'), timeoutMs);
      });
      const done = new Promise((resolve) => {
        this.#idle = resolve;
      });
      if ((await Promise.race([late, done])) === 'late')
        this.fail(`${this.#inFlight} answers missing after the end`);
      clearTimeout(timer);
    }
  }

  close() {
    this.#running = false;
    for (const connection of this.#connections) connection.close();
    this.#connections = [];
  }

  fail(message) {
    this.errors += 1;
    if (this.errorSamples.length < MAX_ERROR_SAMPLES) this.errorSamples.push(message);
  }

  sent() {
    this.#inFlight += 1;
  }

  answered() {
    this.#inFlight -= 1;
    if (this.#inFlight === 0 && !this.#running) this.#idle?.();
  }
}

const HEAD = 0;
const COUNTED = 1;
const CHUNK_SIZE = 2;
const CHUNK_DATA = 3;
const CHUNK_END = 4;
const TRAILER = 5;

class Connection {
  #load;
  #socket = null;
  #turn;
  #busy = false;
  #closed = false;
  #state = HEAD;
  #rest = null;
  #left = 0;
  #sizeText = '';
  #status = 0;
  #closeAfter = false;
  #events = 0;
  #tail = '';
  #sentAt = 0;

  constructor(load, index) {
    this.#load = load;
    this.#turn = index;
  }

  connect() {
    return new Promise((resolve) => {
      const socket = net.connect({
        port: this.#load.options.port,
        host: '127.0.0.1',
        noDelay: true,
        onread: {
          buffer: shared,
          callback: (count, buffer) => {
            if (socket === this.#socket) this.#read(buffer.subarray(0, count));
            return true;
          },
        },
      });
      this.#socket = socket;
      socket.once('connect', resolve);
      socket.on('error', (error) => {
        if (!this.#closed && !this.#busy) this.#load.fail(`connect: ${error.message}`);
        resolve();
      });
      socket.on('close', () => this.#lost(socket));
    });
  }

  send() {
    const { requests } = this.#load.options;
    const request = requests[this.#turn % requests.length];
    this.#turn += 1;
    this.#busy = true;
    this.#events = 0;
    this.#tail = '';
    this.#load.sent();
    if (this.#load.options.latencies) this.#sentAt = performance.now();
    this.#socket.write(request);
  }

  close() {
    this.#closed = true;
    this.#socket?.destroy();
  }

  #lost(socket) {
    if (this.#closed || socket !== this.#socket) return;
    const wasBusy = this.#busy;
    if (wasBusy) {
      this.#busy = false;
      this.#state = HEAD;
      this.#rest = null;
      this.#load.fail('connection closed before the end of the answer');
      this.#load.answered();
    }
    if (!this.#load.running) return;
    setTimeout(() => {
      if (this.#closed || !this.#load.running) return;
      void this.connect().then(() => {
        if (!this.#closed && !this.#busy && this.#load.running) this.send();
      });
    }, 20);
  }

  #read(chunk) {
    let data = chunk;
    if (this.#rest !== null) {
      data = Buffer.concat([this.#rest, chunk]);
      this.#rest = null;
    }
    let at = 0;
    while (at < data.length) {
      switch (this.#state) {
        case HEAD:
          at = this.#readHead(data, at);
          if (at === -1) return;
          break;
        case COUNTED: {
          const take = Math.min(this.#left, data.length - at);
          this.#content(data, at, at + take);
          at += take;
          this.#left -= take;
          if (this.#left === 0) this.#finish();
          break;
        }
        case CHUNK_SIZE: {
          const line = data.indexOf(10, at);
          this.#sizeText += data.latin1Slice(at, line === -1 ? data.length : line);
          at = line === -1 ? data.length : line + 1;
          if (line === -1) break;
          this.#left = Number.parseInt(this.#sizeText, 16);
          this.#sizeText = '';
          this.#state = this.#left === 0 ? TRAILER : CHUNK_DATA;
          break;
        }
        case CHUNK_DATA: {
          const take = Math.min(this.#left, data.length - at);
          this.#content(data, at, at + take);
          at += take;
          this.#left -= take;
          if (this.#left === 0) this.#state = CHUNK_END;
          break;
        }
        case CHUNK_END:
        case TRAILER:
          // No trailer fields are expected: what is left is the line end of the chunk, or of the last one.
          if (data[at] === 10) {
            if (this.#state === TRAILER) this.#finish();
            else this.#state = CHUNK_SIZE;
          }
          at += 1;
          break;
      }
    }
  }

  #readHead(data, at) {
    const end = data.indexOf(HEAD_END, at);
    if (end === -1) {
      this.#rest = Buffer.from(data.subarray(at));
      return -1;
    }
    const head = data.latin1Slice(at, end);
    this.#status = Number(head.slice(9, 12));
    if (this.#status >= 100 && this.#status < 200) return end + 4;
    this.#closeAfter = /\r\nconnection: *close/i.test(head);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head);
    if (length !== null) {
      this.#left = Number(length[1]);
      this.#state = COUNTED;
      if (this.#left === 0) this.#finish();
    } else if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
      this.#state = CHUNK_SIZE;
    } else {
      this.#load.fail('answer without a length');
      this.#socket.destroy();
    }
    return end + 4;
  }

  #content(data, from, to) {
    const { expectStream, delays } = this.#load.options;
    if (this.#status !== 200 && this.#tail.length < 300)
      this.#tail += data.latin1Slice(from, Math.min(to, from + 300));
    if (!expectStream || this.#status !== 200) return;
    const piece = data.subarray(from, to);
    let count = 0;
    // A blank line cut in two between reads.
    let at = piece[0] === 10 && this.#tail.endsWith('\n') && !this.#tail.endsWith('\n\n') ? 1 : 0;
    if (at === 1) count += 1;
    for (;;) {
      at = piece.indexOf(BLANK_LINE, at);
      if (at === -1) break;
      count += 1;
      at += 2;
    }
    this.#events += count;
    this.#load.events += count;
    this.#tail =
      (piece.length < 8 ? this.#tail : '') + piece.latin1Slice(Math.max(0, piece.length - 8), piece.length);
    if (delays) this.#readStamps(piece);
  }

  #readStamps(piece) {
    const now = Number(process.hrtime.bigint() / 1000n);
    let at = piece.indexOf(STAMP);
    while (at !== -1) {
      const sentAt = Number.parseInt(piece.latin1Slice(at + 4, at + 24), 10);
      this.#load.delays.push(now - sentAt);
      at = piece.indexOf(STAMP, at + 4);
    }
  }

  #finish() {
    const load = this.#load;
    const { expectStream, expectEvents, latencies } = load.options;
    this.#state = HEAD;
    this.#busy = false;
    if (latencies) load.latencies.push(performance.now() - this.#sentAt);
    if (this.#status !== 200) load.fail(`status ${this.#status}: ${this.#tail.slice(0, 200)}`);
    else if (expectStream && !this.#tail.includes('[DONE]')) load.fail('stream ended without [DONE]');
    else if (expectEvents !== undefined && this.#events !== expectEvents) {
      load.fail(`${this.#events} events instead of ${expectEvents}`);
    } else load.completed += 1;
    load.answered();
    if (this.#closeAfter) this.#socket.destroy();
    else if (load.running && !load.options.once) this.send();
  }
}
