// S: about the least a Node proxy of this kind can cost. The body stays bytes, `model` is replaced in them, undici
// `dispatch` with a handler of our own writes what comes straight to the socket.
import Fastify from 'fastify';
import { Agent } from 'undici';

const { UPSTREAM_URL, PORT, REAL_MODEL } = process.env;
const url = new URL(UPSTREAM_URL);
const path = `${url.pathname}/chat/completions`;
const model = Buffer.from(JSON.stringify(REAL_MODEL));
const JOIN_LIMIT_BYTES = 64 * 1024;
const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
const app = Fastify({ bodyLimit: 64 * 1024 * 1024 });

app.removeAllContentTypeParsers();
app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) =>
  done(null, body),
);
app.get('/healthz', async () => ({ status: 'ok' }));

/** Past the string that begins at `at`. */
function stringEnd(bytes, at) {
  let end = at;
  for (;;) {
    end = bytes.indexOf(0x22, end + 1);
    if (end === -1) throw new Error('open string');
    let slashes = 0;
    while (bytes[end - 1 - slashes] === 0x5c) slashes += 1;
    if (slashes % 2 === 0) return end + 1;
  }
}

/** Where the value of the top-level `model` stands. */
function modelRange(bytes) {
  let depth = 0;
  let isKey = false;
  for (let at = 0; at < bytes.length;) {
    const byte = bytes[at];
    if (byte === 0x22) {
      const end = stringEnd(bytes, at);
      if (depth === 1 && isKey && end - at === 7 && bytes.latin1Slice(at + 1, end - 1) === 'model') {
        let from = end;
        while (bytes[from] !== 0x22) from += 1;
        return [from, stringEnd(bytes, from)];
      }
      isKey = false;
      at = end;
      continue;
    }
    if (byte === 0x7b || byte === 0x5b) {
      depth += 1;
      isKey = byte === 0x7b;
    } else if (byte === 0x7d || byte === 0x5d) depth -= 1;
    else if (byte === 0x2c) isKey = depth === 1;
    at += 1;
  }
  throw new Error('no model');
}

class Relay {
  #raw;
  #controller = null;
  #done = false;

  constructor(raw) {
    this.#raw = raw;
    raw.on('close', () => {
      if (!this.#done) this.#controller?.abort(new Error('client gone'));
    });
    raw.on('drain', () => this.#controller?.resume());
  }

  onRequestStart(controller) {
    this.#controller = controller;
  }

  onResponseStart(_controller, status, headers) {
    const out = { 'content-type': headers['content-type'] };
    if (headers['content-length'] !== undefined) out['content-length'] = headers['content-length'];
    this.#raw.writeHead(status, out);
  }

  onResponseData(controller, chunk) {
    if (!this.#raw.write(chunk)) controller.pause();
  }

  onResponseEnd() {
    this.#done = true;
    this.#raw.end();
  }

  onResponseError() {
    this.#done = true;
    if (this.#raw.headersSent) this.#raw.destroy();
    else this.#raw.writeHead(502).end();
  }
}

app.post('/v1/chat/completions', (incoming, reply) => {
  reply.hijack();
  const bytes = incoming.body;
  const [from, to] = modelRange(bytes);
  const parts = [bytes.subarray(0, from), model, bytes.subarray(to)];
  const length = from + model.length + bytes.length - to;
  dispatcher.dispatch(
    {
      origin: url.origin,
      path,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: 'Bearer bench-key',
        'content-length': String(length),
      },
      body: length <= JOIN_LIMIT_BYTES ? Buffer.concat(parts, length) : parts,
    },
    new Relay(reply.raw),
  );
});

process.on('SIGTERM', () => process.exit(0));
await app.listen({ port: Number(PORT), host: '127.0.0.1' });
