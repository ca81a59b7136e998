// A fake provider on raw sockets: answers well or badly by a plan, and counts what runs at each upstream.
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { bodyOf, encodedBodyOf, planAnswer } from './answer-plan.mjs';

/** An exchange whose connection the gateway closed counts as over when that was seen here, give or take this. */
const TOLERANCE_MS = 40;
/** No script lasts longer; the gateway's timeouts come first. */
const LONGEST_STALL_MS = 8000;
const HEAD_LIMIT_BYTES = 128 * 1024;
/** How many finished exchanges are remembered, for clients that still read. */
const REMEMBERED = 20_000;

/** One request as it reached the provider. `end`: null while it runs, then `whole`, `cut` (by us) or `left` (by them). */
class Exchange {
  end = null;
  endedAt = 0;
  plan = null;
  /** Set when a whole, good answer was handed to the network: the only one a client may take for whole. */
  truthful = false;

  constructor(number, upstream) {
    this.number = number;
    this.upstream = upstream;
    this.beganAt = performance.now();
  }
}

export class FakeProvider {
  exchanges = new Map();
  /** Per upstream: what runs now, and the most that ran at once. */
  running = new Map();
  most = {};
  violations = [];
  counts = {};
  probes = 0;
  #sockets = new Set();
  #server;
  #number = 0;

  constructor(random, limits) {
    this.random = random;
    this.limits = limits;
    for (const id of Object.keys(limits)) {
      this.running.set(id, new Set());
      this.most[id] = 0;
    }
  }

  async listen() {
    this.#server = net.createServer({ noDelay: true }, (socket) => this.#accept(socket));
    await new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this.#server.address().port;
  }

  get connections() {
    return this.#sockets.size;
  }

  closeIdle() {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close() {
    this.closeIdle();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(socket) {
    this.#sockets.add(socket);
    const connection = new Connection(this, socket);
    socket.on('error', () => {});
    socket.on('data', (bytes) => connection.data(bytes));
    socket.on('end', () => {
      connection.gone();
      socket.destroy();
    });
    socket.on('close', () => {
      this.#sockets.delete(socket);
      connection.gone();
    });
  }

  begin(upstream, probe) {
    const exchange = new Exchange(this.#number++, upstream);
    this.exchanges.set(exchange.number, exchange);
    if (this.exchanges.size > REMEMBERED) this.exchanges.delete(this.exchanges.keys().next().value);
    if (probe) this.probes++;
    else this.#count(exchange);
    return exchange;
  }

  over(exchange, end) {
    if (exchange.end !== null) return;
    exchange.end = end;
    exchange.endedAt = performance.now();
    this.running.get(exchange.upstream)?.delete(exchange);
  }

  #count(exchange) {
    const running = this.running.get(exchange.upstream);
    const limit = this.limits[exchange.upstream];
    const others = [...running];
    running.add(exchange);
    if (running.size <= limit) {
      this.most[exchange.upstream] = Math.max(this.most[exchange.upstream], running.size);
      return;
    }
    // Those whose connection the gateway had closed already, unseen here as yet, do not count.
    setTimeout(
      () => setImmediate(() => setImmediate(() => this.#judge(exchange, others, limit))),
      TOLERANCE_MS,
    );
  }

  #judge(exchange, others, limit) {
    // Where this process itself was late, it saw closes late.
    const allowedMs = Math.max(TOLERANCE_MS, performance.now() - exchange.beganAt);
    const real = others.filter(
      ({ end, endedAt }) => !(end === 'left' && endedAt - exchange.beganAt <= allowedMs),
    );
    const most = real.length + 1;
    this.most[exchange.upstream] = Math.max(this.most[exchange.upstream], most);
    if (most > limit)
      this.violations.push(`${most} exchanges at once at ${exchange.upstream}, limit ${limit}`);
  }
}

/** One connection: reads requests, one after the other, and plays the plan of each. */
class Connection {
  #buffer = Buffer.alloc(0);
  #exchange = null;
  #bodyLeft = -1;
  #body = [];
  #early = false;

  constructor(provider, socket) {
    this.provider = provider;
    this.socket = socket;
  }

  gone() {
    if (this.#exchange !== null) this.provider.over(this.#exchange, 'left');
  }

  data(bytes) {
    this.#buffer = this.#buffer.length === 0 ? bytes : Buffer.concat([this.#buffer, bytes]);
    if (this.#bodyLeft < 0 && this.#exchange === null && !this.#readHead()) return;
    if (this.#bodyLeft >= 0) this.#readBody();
  }

  #readHead() {
    const at = this.#buffer.indexOf('\r\n\r\n');
    if (at < 0) {
      if (this.#buffer.length > HEAD_LIMIT_BYTES) this.socket.destroy();
      return false;
    }
    const head = this.#buffer.toString('latin1', 0, at);
    this.#buffer = this.#buffer.subarray(at + 4);
    const upstream = head.split(' ', 2)[1].split('/')[1];
    this.#bodyLeft = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
    this.#body = [];
    // Every client of the soak says what it wants in a header of its own; a probe has no client.
    const probe = !/\r\nx-soak-stream:/i.test(head);
    this.#exchange = this.provider.begin(upstream, probe);
    const stream = /\r\nx-soak-stream: yes/i.test(head) || probe;
    const plan = planAnswer(this.provider.random, { upstream, stream });
    if (probe && this.provider.random.chance(0.5)) plan.kind = 'status503';
    this.#exchange.plan = plan;
    this.provider.counts[plan.kind] = (this.provider.counts[plan.kind] ?? 0) + 1;
    this.#early = plan.kind === 'resetOnHead' || plan.kind === 'earlyRefusal';
    if (this.#early) this.#play();
    return true;
  }

  #readBody() {
    const piece = this.#buffer.subarray(0, this.#bodyLeft);
    this.#bodyLeft -= piece.length;
    this.#buffer = this.#buffer.subarray(piece.length);
    if (this.#bodyLeft > 0) return;
    this.#bodyLeft = -1;
    if (!this.#early) this.#play();
  }

  #play() {
    const exchange = this.#exchange;
    new Script(this.provider, this.socket, exchange)
      .play()
      .catch(() => this.socket.destroy())
      .finally(() => {
        if (exchange.end === null) this.provider.over(exchange, 'cut');
        this.#exchange = null;
        if (this.#early && !this.socket.destroyed) this.socket.destroySoon();
        else if (this.#buffer.length > 0) this.data(Buffer.alloc(0));
      });
  }
}

const REASONS = { 200: 'OK', 302: 'Found', 400: 'Bad Request' };

/** Plays one plan on a socket. */
class Script {
  constructor(provider, socket, exchange) {
    this.provider = provider;
    this.random = provider.random;
    this.socket = socket;
    this.exchange = exchange;
    this.plan = exchange.plan;
  }

  async play() {
    if (this.random.chance(0.5)) await sleep(this.random.whole(0, 12));
    const { kind } = this.plan;
    const fault = FAULTS[kind];
    if (fault !== undefined) await fault(this);
    else await this.answer();
  }

  get gone() {
    return this.socket.destroyed || this.exchange.end !== null;
  }

  async write(bytes) {
    if (this.gone) return false;
    await new Promise((resolve) => {
      const done = () => {
        this.socket.off('close', done);
        resolve();
      };
      this.socket.once('close', done);
      this.socket.write(bytes, done);
    });
    return !this.gone;
  }

  head(status, headers, framing) {
    const { asStream } = this.plan;
    const type = asStream ? 'text/event-stream; charset=utf-8' : 'application/json';
    const all = { 'content-type': type, 'x-soak-exchange': this.exchange.number, ...headers };
    let text = `HTTP/1.1 ${status} ${REASONS[status] ?? 'Other'}\r\n`;
    for (const [name, value] of Object.entries(all)) if (value !== null) text += `${name}: ${value}\r\n`;
    if (framing === 'chunked') text += 'transfer-encoding: chunked\r\n';
    return this.write(`${text}\r\n`);
  }

  /** Writes the body in pieces cut anywhere; `upTo` of them, so that a fault can come in the middle. */
  async body(bytes, { chunked, pieces = 8, pauseMs = 0, part = 1 }) {
    const list = this.random.cut(bytes, pieces);
    for (const piece of list.slice(0, Math.ceil(list.length * part))) {
      if (pauseMs > 0) await sleep(pauseMs);
      const framed = chunked
        ? Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')])
        : piece;
      if (!(await this.write(framed))) return false;
    }
    return true;
  }

  /** A good answer, framed by length or in chunks. */
  async answer({ headers = {}, bytes = bodyOf(this.random, this.plan, this.exchange.number), ...how } = {}) {
    const chunked = this.plan.asStream || this.random.chance(0.3);
    if (chunked) await this.head(200, headers, 'chunked');
    else await this.head(200, { ...headers, 'content-length': bytes.length }, 'length');
    if (!(await this.body(bytes, { chunked, ...how }))) return;
    // Before the last bytes go out: from here a client may have all of it.
    this.exchange.truthful = true;
    if (!chunked || (await this.write('0\r\n\r\n'))) this.provider.over(this.exchange, 'whole');
  }

  async refuse(status, headers = {}) {
    const body = JSON.stringify({ error: { message: 'no', type: 'provider', param: null, code: 'no' } });
    this.exchange.truthful = status === 400;
    const own = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    await this.head(status, { ...own, ...headers }, 'length');
    if (await this.write(body)) this.provider.over(this.exchange, 'whole');
  }

  /** The beginning of a good answer, up to somewhere in its middle. */
  async half(chunked = true) {
    const bytes = bodyOf(this.random, this.plan, this.exchange.number);
    await this.head(200, chunked ? {} : { connection: 'close' }, chunked ? 'chunked' : 'close');
    await this.body(bytes.subarray(0, Math.floor(bytes.length * (0.1 + 0.8 * this.random.next()))), {
      chunked,
    });
  }

  async stall() {
    const until = performance.now() + LONGEST_STALL_MS;
    while (!this.gone && performance.now() < until) await sleep(10);
    this.cut('destroy');
  }

  cut(how) {
    this.provider.over(this.exchange, 'cut');
    this.socket[how]();
  }
}

const FAULTS = {
  resetOnHead: (script) => script.cut('resetAndDestroy'),
  resetAfterBody: (script) => script.cut('resetAndDestroy'),
  closeOnBody: (script) => script.cut('destroy'),
  async resetAfterHead(script) {
    await script.head(200, {}, 'chunked');
    script.cut('resetAndDestroy');
  },
  status503: (script) => script.refuse(503),
  async status429(script) {
    await script.refuse(429, { 'retry-after-ms': script.random.whole(1, 300) });
  },
  status402: (script) => script.refuse(402),
  status400: (script) => script.refuse(400),
  redirect: (script) => script.refuse(302, { location: 'http://127.0.0.1:9/' }),
  earlyRefusal: (script) => script.refuse(400),
  stallBeforeHead: (script) => script.stall(),
  async stallAfterHead(script) {
    await script.head(200, {}, 'chunked');
    await script.stall();
  },
  async stallMidway(script) {
    await script.half();
    await script.stall();
  },
  async html(script) {
    const page = `<!doctype html>${'<p>wait</p>'.repeat(script.random.whole(1, 4000))}`;
    await script.head(200, { 'content-type': 'text/html', 'content-length': page.length }, 'length');
    if (await script.write(page)) script.provider.over(script.exchange, 'whole');
  },
  /** A clean end by the framing, but half a JSON: never an answer. A half stream cannot be told from a whole one. */
  async cutJson(script) {
    script.plan.asStream = false;
    const bytes = bodyOf(script.random, script.plan, script.exchange.number);
    const half = bytes.subarray(0, script.random.whole(1, bytes.length - 1));
    await script.head(200, { 'content-length': half.length }, 'length');
    if (await script.write(half)) script.provider.over(script.exchange, 'whole');
  },
  async errorObject(script) {
    script.plan.asStream = false;
    const body = '{"error":{"message":"overloaded","code":"x"}}';
    await script.head(200, { 'content-length': body.length }, 'length');
    if (await script.write(body)) script.provider.over(script.exchange, 'whole');
  },
  async malformedChunk(script) {
    await script.half();
    await script.write('zz\r\nnot a chunk\r\n');
    await script.stall();
  },
  async malformedHead(script) {
    await script.write('HTTP/1.1 abc\r\nno head at all\r\n\r\n');
    await script.stall();
  },
  drip: (script) => script.answer({ pieces: 40, pauseMs: 5 }),
  huge: (script) => script.answer({ pieces: 400 }),
  gzip(script) {
    const bytes = encodedBodyOf(script.random, script.plan, script.exchange.number);
    return script.answer({ headers: { 'content-encoding': 'gzip' }, bytes });
  },
  async brokenGzip(script) {
    const bytes = encodedBodyOf(script.random, script.plan, script.exchange.number);
    const half = bytes.subarray(0, script.random.whole(1, bytes.length - 1));
    await script.head(200, { 'content-encoding': 'gzip', 'content-length': half.length }, 'length');
    if (await script.write(half)) script.provider.over(script.exchange, 'whole');
  },
  async midFin(script) {
    await script.half();
    script.cut('destroySoon');
  },
  async midReset(script) {
    await script.half();
    script.cut('resetAndDestroy');
  },
  async closeDelimited(script) {
    const bytes = bodyOf(script.random, script.plan, script.exchange.number);
    await script.head(200, { connection: 'close' }, 'close');
    if (!(await script.body(bytes, { chunked: false }))) return;
    script.exchange.truthful = true;
    script.provider.over(script.exchange, 'whole');
    script.socket.end();
  },
  async closeDelimitedReset(script) {
    await script.half(false);
    await sleep(15);
    script.cut('resetAndDestroy');
  },
  async closeAfter(script) {
    await script.answer();
    // Without a word, at a moment when the next request may be on its way.
    setTimeout(() => script.socket.destroy(), script.random.whole(0, 5));
  },
  async trailingBytes(script) {
    await script.answer();
    await new Promise((resolve) => script.socket.write('surplus bytes of nobody', resolve));
  },
  async interim(script) {
    await script.write(
      script.random.chance(0.5) ? 'HTTP/1.1 100 Continue\r\n\r\n' : 'HTTP/1.1 103 Early Hints\r\n\r\n',
    );
    await script.answer();
  },
  noType: (script) => script.answer({ headers: { 'content-type': null } }),
};
