// How the fake provider plays the plan of one exchange: a good answer, or one of the faults.
import { setTimeout as sleep } from 'node:timers/promises';
import { bodyOf, encodedBodyOf } from './answer-plan.mjs';

/** No script lasts longer; the gateway's timeouts come first. */
const LONGEST_STALL_MS = 8000;
const REASONS = { 200: 'OK', 302: 'Found', 400: 'Bad Request' };

/** Plays one plan on a socket. */
export class Script {
  /** `isBusy` tells whether an exchange runs on the connection, this one or a later one. */
  constructor(provider, socket, exchange, isBusy) {
    this.provider = provider;
    this.random = provider.random;
    this.socket = socket;
    this.exchange = exchange;
    this.isBusy = isBusy;
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
    // A plain close in the middle of a later answer that ends with its connection would be that answer's clean end.
    const close = () => script.socket[script.isBusy() ? 'resetAndDestroy' : 'destroy']();
    setTimeout(close, script.random.whole(0, 5));
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
