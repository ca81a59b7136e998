// A fake provider on raw sockets: answers well or badly by a plan, and counts what runs at each upstream.
import net from 'node:net';
import { planAnswer } from './answer-plan.mjs';
import { Script } from './script.mjs';

/** An exchange whose connection the gateway closed counts as over when that was seen here, give or take this. */
const TOLERANCE_MS = 40;
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
  /** By which of several ways it came; '' where the client does not say. */
  sender = '';

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
  /** Called with each exchange that begins. */
  onBegin = null;
  #sockets = new Set();
  #server;
  #number = 0;

  /** `plans`: weights of its own, where it should fail in other ways than under the soak. */
  constructor(random, limits, plans) {
    this.plans = plans;
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

  begin(upstream, probe, sender) {
    const exchange = new Exchange(this.#number++, upstream);
    exchange.sender = sender;
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
      this.violations.push(
        `${most} exchanges at once at ${exchange.upstream}, limit ${limit}${by([exchange, ...real])}`,
      );
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
    this.#exchange = this.provider.begin(upstream, probe, /\r\nx-soak-sender: *(\S+)/i.exec(head)?.[1] ?? '');
    const stream = /\r\nx-soak-stream: yes/i.test(head) || probe;
    const plan = planAnswer(this.provider.random, { upstream, stream }, this.provider.plans);
    if (probe && this.provider.random.chance(0.5)) plan.kind = 'status503';
    this.#exchange.plan = plan;
    this.provider.counts[plan.kind] = (this.provider.counts[plan.kind] ?? 0) + 1;
    this.provider.onBegin?.(this.#exchange);
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
    new Script(this.provider, this.socket, exchange, () => this.#exchange !== null)
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

function by(exchanges) {
  const senders = exchanges.map(({ sender }) => sender).filter((sender) => sender !== '');
  return senders.length === 0 ? '' : `, sent by ${senders.join(' and ')}`;
}
