// Clients of every kind: they stay or leave at any moment, read fast or slowly, one by one or in a row.
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { ClientConnection } from './client-connection.mjs';
import { MODELS } from './configuration.mjs';

const BEHAVIOURS = {
  normal: 62,
  pipelined: 6,
  slow: 6,
  leaveSending: 6,
  leaveWaiting: 8,
  leaveReading: 8,
  halfClose: 2,
  mistaken: 2,
};
/** No exchange may take longer: six upstreams, each with its request timeout and the time to read a refusal. */
const DEADLINE_MS = 30_000;
const MODEL_NAMES = Object.keys(MODELS);
let requestNumber = 0;
const WORDS = 'lorem ipsum dolor sit amet '.repeat(20);

/** One client after the other on its own connection, until it is told to stop. */
export class Client {
  counts = {};
  /** A kept-alive connection that was found closed: the client's risk, no fault. */
  stale = 0;
  #connection = null;

  /** `sender`: by which the provider tells who of several sent it. */
  constructor(random, port, check, { models = MODEL_NAMES, behaviours = BEHAVIOURS, sender = '' } = {}) {
    this.random = random;
    this.port = port;
    this.check = check;
    this.models = models;
    this.behaviours = behaviours;
    this.sender = sender === '' ? '' : `x-soak-sender: ${sender}\r\n`;
  }

  /** Plays one behaviour; gives the number of requests it sent. */
  async once() {
    const behaviour = this.random.weighted(this.behaviours);
    this.counts[behaviour] = (this.counts[behaviour] ?? 0) + 1;
    if (behaviour === 'normal') return await this.#whole(1, behaviour);
    if (behaviour === 'pipelined') return await this.#whole(this.random.whole(2, 4), behaviour);
    if (behaviour === 'slow') return await this.#slow();
    if (behaviour === 'mistaken') return await this.#mistaken();
    return await this.#leaving(behaviour);
  }

  close() {
    this.#connection?.leave('destroy');
  }

  #connect() {
    if (this.#connection === null || this.#connection.closed || this.random.chance(0.1)) {
      this.#connection?.leave('destroy');
      this.#connection = new ClientConnection(this.port);
    }
    return this.#connection;
  }

  async #whole(count, behaviour) {
    const connection = this.#connect();
    const reused = connection.answers > 0;
    const requests = [];
    for (let i = 0; i < count; i++) requests.push(this.#send(connection, behaviour));
    const leaves = behaviour === 'pipelined' && this.random.chance(0.3);
    if (leaves) {
      await sleep(this.random.whole(0, 80));
      connection.leave();
    }
    let lost = reused;
    for (const { answer, wish } of requests) {
      await this.#end(answer, connection, wish);
      // An answer that had to be broken off closes its connection; what was queued behind it is lost with it.
      if (answer.status === 0 && answer.ending !== 'left' && lost) this.stale++;
      else if (this.check(answer, wish) !== 'whole') lost = true;
    }
    return count;
  }

  async #slow() {
    const connection = this.#connect();
    const { answer, wish } = this.#send(connection, 'slow', { stream: true });
    let pauses = 0;
    answer.onData = () => {
      if (pauses++ > 60) return;
      connection.socket.pause();
      setTimeout(() => connection.socket.resume(), this.random.whole(1, 40));
    };
    await this.#end(answer, connection, wish);
    if (answer.status === 0 && connection.answers > 0) this.stale++;
    else this.check(answer, wish);
    return 1;
  }

  async #leaving(behaviour) {
    const connection = new ClientConnection(this.port);
    const how = behaviour === 'halfClose' ? 'end' : this.random.pick(['resetAndDestroy', 'destroy']);
    const { answer, wish, bytes } = this.#send(connection, behaviour, { hold: behaviour === 'leaveSending' });
    if (behaviour === 'leaveSending') {
      connection.socket.write(bytes.subarray(0, this.random.whole(0, bytes.length - 1)));
      await sleep(this.random.whole(0, 20));
      connection.leave(how);
    } else if (behaviour === 'leaveWaiting') {
      await sleep(this.random.whole(0, 15));
      connection.leave(how);
    } else if (behaviour === 'leaveReading') {
      const after = this.random.whole(0, 3000);
      answer.onHead = () => after < 500 && connection.leave(how);
      answer.onData = ({ bytes: read }) => read >= after && connection.leave(how);
    } else {
      connection.socket.end();
    }
    await this.#end(answer, connection, wish);
    // A client that half-closed gets its whole answer or nothing.
    if (behaviour === 'halfClose' && answer.status === 0) answer.settle('left');
    else if (behaviour === 'halfClose' || answer.ending === 'complete') this.check(answer, wish);
    connection.leave('destroy');
    return 1;
  }

  async #mistaken() {
    const connection = this.#connect();
    const reused = connection.answers > 0;
    const body = this.random.pick(['{"model":', '[]', '{"model":"nobody"}', '{}', '', '{"model":1}']);
    const answer = connection.expect();
    connection.socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nx-soak-stream: no\r\n` +
        `content-length: ${body.length}\r\n\r\n${body}`,
    );
    const wish = { mistaken: true };
    await this.#end(answer, connection, wish);
    if (answer.status === 0 && reused) this.stale++;
    else this.check(answer, wish);
    return 1;
  }

  async #end(answer, connection, wish) {
    const timer = setTimeout(() => {
      wish.late = true;
      connection.leave();
    }, DEADLINE_MS);
    await answer.ended;
    clearTimeout(timer);
    if (wish.late) this.check(answer, wish);
  }

  #send(connection, behaviour, { stream = this.random.chance(0.6), hold = false } = {}) {
    const model = this.random.pick(this.models);
    const turns = this.random.chance(0.05) ? this.random.whole(50, 400) : this.random.whole(1, 6);
    const messages = [];
    for (let i = 0; i < turns; i++) {
      const content = `${this.random.whole(0, 30)} ${WORDS.slice(0, this.random.whole(0, WORDS.length))}`;
      messages.push({ role: i % 2 === 0 ? 'user' : 'assistant', content });
    }
    let body = Buffer.from(JSON.stringify({ model, stream, messages }));
    let coding = '';
    if (this.random.chance(0.05)) {
      body = gzipSync(body);
      coding = 'content-encoding: gzip\r\n';
    }
    const chunked = this.random.chance(0.15);
    const framing = chunked ? 'transfer-encoding: chunked' : `content-length: ${body.length}`;
    const id = `soak-${requestNumber++}`;
    const head =
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${coding}` +
      `${this.sender}x-soak-stream: ${stream ? 'yes' : 'no'}\r\nx-request-id: ${id}\r\n${framing}\r\n\r\n`;
    const bytes = Buffer.concat([Buffer.from(head), chunked ? inChunks(this.random, body) : body]);
    const answer = connection.expect();
    if (!hold) for (const piece of this.random.cut(bytes, 3)) connection.socket.write(piece);
    return { answer, wish: { model, stream, id, behaviour }, bytes };
  }
}

function inChunks(random, body) {
  const parts = [];
  for (const piece of random.cut(body, 5))
    parts.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, '\r\n');
  return Buffer.concat([...parts, '0\r\n\r\n'].map((part) => Buffer.from(part)));
}
