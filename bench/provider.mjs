// The fake provider: a raw socket server with canned answers, cheap enough to share a core with the load generator.
// What it answers is chosen by the start of the path, so a target only needs another base url:
//   /unary/…          small JSON completion            /503/…        503 with a JSON error
//   /sse/N/MS/…       N events, one every MS ms        /think/N/MS/… the same, the first half inside <think>
//   /mix/N/MS/…       body < 1 MB: N events that carry their send time; else the JSON completion
import net from 'node:net';

const MIX_LIMIT_BYTES = 1_000_000;
const stats = { requests: 0, events: 0, active: 0 };
let capture = null;

const COMPLETION = JSON.stringify({
  id: 'chatcmpl-bench0000000000000000000',
  object: 'chat.completion',
  created: 1760000000,
  model: 'real-model',
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: 'Four. Two and two make four, as they have done for a good while now.',
      },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 57, completion_tokens: 17, total_tokens: 74 },
  system_fingerprint: 'fp_bench',
});
const ERROR = JSON.stringify({
  error: { message: 'overloaded', type: 'server_error', param: null, code: null },
});
const answer = (status, body) =>
  Buffer.from(
    `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\nx-request-id: bench\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
const UNARY = answer('200 OK', COMPLETION);
const UNAVAILABLE = answer('503 Service Unavailable', ERROR);
const SSE_HEAD = Buffer.from(
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n' +
    'x-request-id: bench\r\ntransfer-encoding: chunked\r\n\r\n',
);

function httpChunk(text) {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

function event(content, finishReason = null, extra = '') {
  const data =
    `{"id":"chatcmpl-bench0000000000000000000","object":"chat.completion.chunk","created":1760000000,` +
    `"model":"real-model",${extra}"choices":[{"index":0,"delta":{"content":${JSON.stringify(content)}},` +
    `"logprobs":null,"finish_reason":${finishReason === null ? 'null' : `"${finishReason}"`}}]}`;
  return `data: ${data}\n\n`;
}

/** The N writes of a stream, few buffers however long it is; the last one carries `[DONE]` and the end of the answer. */
function script(count, thinking) {
  const half = Math.floor(count / 2);
  const middle = Buffer.from(httpChunk(event(' word')));
  const opening = Buffer.from(httpChunk(event('<think> word')));
  const closing = Buffer.from(httpChunk(event(' word</think>')));
  const end = Buffer.from(`${httpChunk(event(' word', 'stop'))}${httpChunk('data: [DONE]\n\n')}0\r\n\r\n`);
  return {
    count,
    at(i) {
      if (i === count - 1) return end;
      if (thinking && i === 0) return opening;
      return thinking && i === half ? closing : middle;
    },
  };
}

function stream(socket, writes, intervalMs, stamped) {
  socket.write(SSE_HEAD);
  stats.active += 1;
  let next = 0;
  const timer = setInterval(() => {
    const last = next === writes.count - 1;
    if (stamped && !last) socket.write(httpChunk(event(' word', null, `"t":${now()},`)));
    else socket.write(writes.at(next));
    stats.events += 1;
    next += 1;
    if (last) stop();
  }, intervalMs);
  const stop = () => {
    clearInterval(timer);
    if (socket.stopStream === stop) {
      socket.stopStream = null;
      stats.active -= 1;
    }
  };
  socket.stopStream = stop;
}

/** Microseconds of the monotonic clock, which all processes of a machine share. */
function now() {
  return Number(process.hrtime.bigint() / 1000n);
}

const behaviours = new Map();
function behaviourOf(path) {
  let found = behaviours.get(path);
  if (found === undefined) {
    const [, mode, count, intervalMs] = path.split('/');
    found = build(mode, Number(count), Number(intervalMs));
    behaviours.set(path, found);
  }
  return found;
}

function build(mode, count, intervalMs) {
  if (mode === 'unary') return (socket) => socket.write(UNARY);
  if (mode === '503') return (socket) => socket.write(UNAVAILABLE);
  const writes = script(count, mode === 'think');
  if (mode === 'sse' || mode === 'think') return (socket) => stream(socket, writes, intervalMs, false);
  if (mode === 'mix') {
    return (socket, bodyBytes) =>
      bodyBytes > MIX_LIMIT_BYTES ? socket.write(UNARY) : stream(socket, writes, intervalMs, true);
  }
  return (socket) => socket.write(answer('404 Not Found', ERROR));
}

const HEAD_END = Buffer.from('\r\n\r\n');

/** One connection: head, then a body of known length or in chunks, then the answer. Pipelining is not needed here. */
class Connection {
  #socket;
  #rest = null;
  #head = '';
  #left = -1; // bytes of the body to come; -1 = between requests; -2 = chunked
  #bodyBytes = 0;
  #kept = null;

  constructor(socket) {
    this.#socket = socket;
    socket.on('data', (chunk) => this.#read(chunk));
    socket.on('error', () => {});
    socket.on('close', () => socket.stopStream?.());
  }

  #read(chunk) {
    let data = this.#rest === null ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = null;
    if (this.#left === -1) {
      const end = data.indexOf(HEAD_END);
      if (end === -1) {
        this.#rest = data;
        return;
      }
      this.#head = data.latin1Slice(0, end);
      data = data.subarray(end + 4);
      this.#bodyBytes = 0;
      this.#kept = capture === null ? null : [];
      const length = /\r\ncontent-length: *(\d+)/i.exec(this.#head);
      if (length !== null) this.#left = Number(length[1]);
      else this.#left = /\r\ntransfer-encoding: *chunked/i.test(this.#head) ? -2 : 0;
    }
    if (this.#left === -2) this.#readChunked(data);
    else this.#readCounted(data);
  }

  #readCounted(data) {
    this.#kept?.push(data);
    this.#bodyBytes += data.length;
    this.#left -= data.length;
    if (this.#left <= 0) this.#answer();
  }

  #readChunked(data) {
    let at = 0;
    while (at < data.length) {
      const line = data.indexOf(10, at);
      if (line === -1) break;
      const size = Number.parseInt(data.latin1Slice(at, line), 16);
      if (line + 1 + size + 2 > data.length) break;
      this.#kept?.push(data.subarray(line + 1, line + 1 + size));
      this.#bodyBytes += size;
      at = line + 1 + size + 2;
      if (size === 0) {
        this.#answer();
        return;
      }
    }
    this.#rest = data.subarray(at);
  }

  #answer() {
    this.#left = -1;
    stats.requests += 1;
    if (this.#kept !== null && capture !== null) {
      process.send?.({ captured: { head: this.#head, body: Buffer.concat(this.#kept).toString('utf8') } });
      capture = null;
    }
    const path = this.#head.slice(this.#head.indexOf(' ') + 1, this.#head.indexOf(' HTTP/'));
    behaviourOf(path)(this.#socket, this.#bodyBytes);
  }
}

const server = net.createServer({ noDelay: true }, (socket) => new Connection(socket));
server.listen(0, '127.0.0.1', 4096, () => process.send?.({ port: server.address().port }));
process.on('message', (message) => {
  if (message.ask === 'stats') process.send?.({ stats: { ...stats } });
  if (message.ask === 'capture') capture = true;
});
process.on('disconnect', () => process.exit(0));
