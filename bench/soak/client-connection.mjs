// A client's connection below any HTTP library: answers as bytes, with the truth about how each one ended.
import net from 'node:net';

/** One answer. `ending`: null, then `complete` by its framing, `cut` or `reset` before that, or `left` by us. */
export class ClientAnswer {
  status = 0;
  headers = new Map();
  pieces = [];
  bytes = 0;
  ending = null;
  onHead = null;
  onData = null;
  #ended = Promise.withResolvers();

  get ended() {
    return this.#ended.promise;
  }

  get body() {
    return Buffer.concat(this.pieces);
  }

  take(piece) {
    if (piece.length === 0) return;
    this.pieces.push(piece);
    this.bytes += piece.length;
    this.onData?.(this);
  }

  settle(ending) {
    if (this.ending !== null) return;
    this.ending = ending;
    this.#ended.resolve(this);
  }
}

export class ClientConnection {
  closed = false;
  answers = 0;
  #waiting = [];
  #buffer = Buffer.alloc(0);
  #state = 'head';
  #left = 0;
  #failed = false;

  constructor(port) {
    this.socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.on('error', () => (this.#failed = true));
    this.socket.on('data', (bytes) => {
      this.#buffer = this.#buffer.length === 0 ? bytes : Buffer.concat([this.#buffer, bytes]);
      while (this.#step());
    });
    this.socket.on('end', () => this.#over());
    this.socket.on('close', () => this.#over());
  }

  /** The answer to a request whose bytes the caller writes to `socket`. */
  expect() {
    const answer = new ClientAnswer();
    if (this.closed) answer.settle('cut');
    else this.#waiting.push(answer);
    return answer;
  }

  /** The client goes away, without a word or with a FIN. */
  leave(how = 'resetAndDestroy') {
    for (const answer of this.#waiting.splice(0)) answer.settle('left');
    this.closed = true;
    this.socket[how]();
  }

  #over() {
    this.closed = true;
    const ending = this.#state === 'to-end' ? 'complete' : this.#failed ? 'reset' : 'cut';
    for (const answer of this.#waiting.splice(0)) answer.settle(ending);
    this.socket.destroy();
  }

  #step() {
    const answer = this.#waiting[0];
    if (answer === undefined) return false;
    if (this.#state === 'head') return this.#head(answer);
    if (this.#state === 'size' || this.#state === 'trailer') {
      const at = this.#buffer.indexOf('\r\n');
      if (at < 0) return false;
      const line = this.#buffer.toString('latin1', 0, at);
      this.#buffer = this.#buffer.subarray(at + 2);
      if (this.#state === 'trailer') {
        if (line === '') this.#finish();
        return true;
      }
      this.#left = Number.parseInt(line, 16);
      this.#state = this.#left === 0 ? 'trailer' : 'chunk';
      return true;
    }
    return this.#bytes(answer);
  }

  #bytes(answer) {
    const count = this.#state === 'to-end' ? this.#buffer.length : Math.min(this.#left, this.#buffer.length);
    answer.take(this.#buffer.subarray(0, count));
    this.#buffer = this.#buffer.subarray(count);
    this.#left -= count;
    if (this.#state === 'to-end' || this.#left > 0) return false;
    if (this.#state === 'length') {
      this.#finish();
      return true;
    }
    if (this.#buffer.length < 2) return false;
    this.#buffer = this.#buffer.subarray(2);
    this.#state = 'size';
    return true;
  }

  #head(answer) {
    const at = this.#buffer.indexOf('\r\n\r\n');
    if (at < 0) return false;
    const [first, ...lines] = this.#buffer.toString('latin1', 0, at).split('\r\n');
    this.#buffer = this.#buffer.subarray(at + 4);
    answer.status = Number(first.split(' ')[1]);
    if (answer.status < 200) return true;
    for (const line of lines) {
      const colon = line.indexOf(':');
      answer.headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
    }
    const length = answer.headers.get('content-length');
    if (answer.status === 204 || length === '0') this.#state = 'none';
    else if (answer.headers.has('transfer-encoding')) this.#state = 'size';
    else if (length === undefined) this.#state = 'to-end';
    else {
      this.#state = 'length';
      this.#left = Number(length);
    }
    answer.onHead?.(answer);
    if (this.#state === 'none') this.#finish();
    return true;
  }

  #finish() {
    this.#state = 'head';
    this.answers++;
    this.#waiting.shift()?.settle('complete');
  }
}
