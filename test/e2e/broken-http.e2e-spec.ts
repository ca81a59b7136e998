import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { ServiceState } from '../../src/http/service-state.js';
import type { RawAnswer, RawConnection } from '../support/raw-client.js';
import type { Script } from '../support/scripted-upstream.js';
import { MESSAGES, stage } from '../support/stage.js';
import { type Gate, gate, waitFor } from '../support/wait-for.js';

const BODY = JSON.stringify({ model: 'm', messages: MESSAGES });
const CHUNKED = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;

interface Parts {
  readonly version?: string;
  readonly host?: string;
  readonly headers?: string;
  readonly body?: string;
}

/** A chat request by its bytes; it announces its length unless the headers say how its body is framed. */
function chat({ version = '1.1', host = 'host: x\r\n', headers = '', body = BODY }: Parts = {}): string {
  const framed = /^(content-length|transfer-encoding)/im.test(headers);
  const length = framed ? '' : `content-length: ${Buffer.byteLength(body)}\r\n`;
  return `POST /v1/chat/completions HTTP/${version}\r\n${host}content-type: application/json\r\n${headers}${length}\r\n${body}`;
}

function get(path: string, { version = '1.1', host = 'host: x\r\n', headers = '' }: Parts = {}): string {
  return `GET ${path} HTTP/${version}\r\n${host}${headers}\r\n`;
}

/** The answers to bytes that hold so many requests. */
async function answers(connection: RawConnection, bytes: string, count = 1): Promise<RawAnswer[]> {
  const expected = Array.from({ length: count }, () => connection.expect());
  connection.socket.write(Buffer.from(bytes, 'latin1'));
  for (const answer of expected) await answer.end();
  return expected;
}

const answerAfter =
  (hold: Gate): Script =>
  async (_request, answer) => {
    await hold.opened;
    await answer.json(200, { choices: [] });
  };

function expectRefusal(answer: RawAnswer | undefined, status: number, code: string): void {
  expect([answer?.status, answer?.ending]).toEqual([status, 'complete']);
  expect(answer?.json).toEqual({
    error: { message: expect.any(String), type: 'invalid_request_error', param: null, code },
  });
  expect(answer?.header('content-type')).toMatch(/^application\/json/);
  expect(answer?.header('x-request-id')).toMatch(/^[A-Za-z0-9._:-]{1,128}$/);
  expect(answer?.headerLines.filter(([name]) => name === 'connection')).toEqual([['connection', 'close']]);
  expect(answer?.interim).toEqual([]);
}

const ended = (connection: RawConnection) =>
  waitFor(() => connection.closed || connection.socket.readableEnded, 'the connection ended');

describe('a request that breaks HTTP is answered in our form, and its connection ends (RFC 9112)', () => {
  const malformed = 'malformed_request';
  it.each<[string, string, number, string]>([
    [
      'a broken chunk size',
      chat({ headers: 'transfer-encoding: chunked\r\n', body: 'zz\r\n' }),
      400,
      malformed,
    ],
    [
      'a chunk size beyond all bounds',
      chat({ headers: 'transfer-encoding: chunked\r\n', body: `${'f'.repeat(20)}\r\n` }),
      400,
      malformed,
    ],
    [
      'chunks with bare line feeds',
      chat({ headers: 'transfer-encoding: chunked\r\n', body: CHUNKED.replaceAll('\r', '') }),
      400,
      malformed,
    ],
    [
      'a broken chunk size behind a good chunk',
      chat({ headers: 'transfer-encoding: chunked\r\n', body: '1\r\n{\r\n-1\r\n' }),
      400,
      malformed,
    ],
    [
      'a length and chunks',
      chat({ headers: 'content-length: 4\r\ntransfer-encoding: chunked\r\n', body: CHUNKED }),
      400,
      malformed,
    ],
    [
      'chunks and a length',
      chat({ headers: 'transfer-encoding: chunked\r\ncontent-length: 4\r\n', body: CHUNKED }),
      400,
      malformed,
    ],
    [
      'a coding behind chunked',
      chat({ headers: 'transfer-encoding: chunked, gzip\r\n', body: CHUNKED }),
      400,
      malformed,
    ],
    [
      'chunked twice',
      chat({ headers: 'transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n', body: CHUNKED }),
      400,
      malformed,
    ],
    [
      'chunks in HTTP/1.0',
      chat({ version: '1.0', headers: 'transfer-encoding: chunked\r\n', body: CHUNKED }),
      400,
      malformed,
    ],
    ['two lengths', chat({ headers: 'content-length: 3\r\ncontent-length: 3\r\n' }), 400, malformed],
    ['a length with a sign', chat({ headers: 'content-length: +3\r\n' }), 400, malformed],
    ['a space before the colon', get('/healthz', { headers: 'x : y\r\n' }), 400, malformed],
    ['a folded header', get('/healthz', { headers: 'x: a\r\n b\r\n' }), 400, malformed],
    ['a NUL in a header', get('/healthz', { headers: 'x: a\0b\r\n' }), 400, malformed],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, malformed],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, malformed],
    ['a target that is the whole server', get('*'), 400, malformed],
    ['a target of another scheme', get('ftp://x/healthz'), 400, malformed],
    ['a target without a host', get('http:///healthz'), 400, malformed],
    ['a target with a user', get('http://user@x/healthz'), 400, malformed],
    ['a method that nobody knows', get('/healthz').replace('GET', 'BREW'), 501, 'unknown_method'],
    ['a method in small letters', chat().replace('POST', 'post'), 501, 'unknown_method'],
    ['no method that can be one', get('/healthz').replace('GET', 'G(T'), 400, malformed],
    ['an unknown method and no request', 'BREW me a coffee\r\n\r\n', 400, malformed],
    ['a later version', get('/healthz', { version: '1.2' }), 505, 'unsupported_http_version'],
    ['no version', get('/healthz', { version: '1' }), 400, malformed],
    ['lines that end with a line feed alone', get('/healthz').replaceAll('\r', ''), 400, malformed],
    ['a port that is none', get('/healthz', { host: 'host: a:b\r\n' }), 400, 'invalid_host'],
    ['two ports', get('/healthz', { host: 'host: a:1:2\r\n' }), 400, 'invalid_host'],
    ['half an IPv6 address', get('/healthz', { host: 'host: [::1\r\n' }), 400, 'invalid_host'],
    ['no host', get('/healthz', { host: '' }), 400, 'invalid_host'],
    ['no host in a chat', chat({ host: '' }), 400, 'invalid_host'],
    ['two hosts', get('/v1/models', { host: 'host: a\r\nHost: b\r\n' }), 400, 'invalid_host'],
    ['a host that is none', get('/healthz', { host: 'host: a/b\r\n' }), 400, 'invalid_host'],
    [
      'gzip under the chunks',
      chat({ headers: 'transfer-encoding: gzip, chunked\r\n', body: CHUNKED }),
      501,
      'unsupported_transfer_encoding',
    ],
    [
      'gzip and no chunks',
      chat({ headers: 'transfer-encoding: gzip\r\n' }),
      501,
      'unsupported_transfer_encoding',
    ],
    [
      'a name like chunked',
      chat({ headers: 'transfer-encoding: xchunked\r\n', body: CHUNKED }),
      501,
      'unsupported_transfer_encoding',
    ],
    ['an expectation of something else', chat({ headers: 'expect: banana\r\n' }), 417, 'unknown_expectation'],
    ['another version', get('/healthz', { version: '2.0' }), 505, 'unsupported_http_version'],
    ['a request of HTTP/0.9', 'GET /healthz\r\n\r\n', 505, 'unsupported_http_version'],
    [
      'a head that is too large',
      get('/healthz', { headers: `x: ${'a'.repeat(70_000)}\r\n` }),
      431,
      'headers_too_large',
    ],
    ['a target that is too long', get(`/${'a'.repeat(70_000)}`), 431, 'headers_too_large'],
    [
      'CONNECT',
      'CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n',
      405,
      'method_not_allowed',
    ],
  ])('%s', async (_what, bytes, status, code) => {
    const { a, gateway } = await stage();
    const connection = gateway.connect();
    const [answer] = await answers(connection, bytes);
    expectRefusal(answer, status, code);
    await ended(connection);
    expect(a.requests).toEqual([]);
    const id = answer?.header('x-request-id');
    await waitFor(() => gateway.lines.some((line) => line['request_id'] === id), 'the log knows the id');
  });

  it.each<[string, string]>([
    ['an upgrade to a web socket', 'connection: upgrade\r\nupgrade: websocket\r\n'],
    [
      'an upgrade to HTTP/2',
      'connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMA\r\n',
    ],
  ])('%s is not taken up: the request is served', async (_what, headers) => {
    const { a, gateway } = await stage();
    const [answer] = await answers(gateway.connect(), chat({ headers }));
    expect(answer?.status).toBe(200);
    expect(a.last.headerNames).not.toContain('upgrade');
  });

  it.each<[string, string]>([
    ['chunks in capitals', chat({ headers: 'transfer-encoding: CHUNKED\r\n', body: CHUNKED })],
    ['a host of IPv6', chat({ host: 'host: [::1]:8100\r\n' })],
    ['a host and no port', chat({ host: 'host: x:\r\n' })],
    ['an empty host', chat({ host: 'host:\r\n' })],
    ['HTTP/1.0 without a host', chat({ version: '1.0', host: '' })],
    ['an absolute target', chat().replace('POST ', 'POST http://x:1')],
  ])('%s is no fault', async (_what, bytes) => {
    const { gateway } = await stage();
    const [answer] = await answers(gateway.connect(), bytes);
    expect(answer?.status).toBe(200);
  });

  it('passes all of many headers on', async () => {
    const { a, gateway } = await stage();
    const headers = Array.from({ length: 3000 }, (_, i) => `x-${i}: ${i}\r\n`).join('');
    const [answer] = await answers(gateway.connect(), chat({ headers }));
    expect(answer?.status).toBe(200);
    expect(a.last.header('x-2999')).toBe('2999');
  });
});

describe('garbage behind good requests on one connection', () => {
  it('costs them no answer: they come first, in order, then the refusal', async () => {
    const { a, gateway } = await stage();
    const holds = [gate(), gate()];
    for (const hold of holds) {
      a.next(async (request, answer) => {
        await hold.opened;
        await answer.json(200, { choices: [], asked: request.header('x-n') });
      });
    }
    const connection = gateway.connect();
    const numbered = (n: number) => chat({ headers: `x-n: ${n}\r\n` });
    const asked = answers(connection, `${numbered(1)}${numbered(2)}\x01garbage\r\n\r\n`, 3);
    await waitFor(() => a.requests.length === 2, 'both were asked');
    connection.socket.write('more garbage');
    for (const hold of holds) hold.open();
    const [first, second, third] = await asked;
    expect([first?.status, second?.status]).toEqual([200, 200]);
    expect([first?.json['asked'], second?.json['asked']]).toEqual(['1', '2']);
    expectRefusal(third, 400, 'malformed_request');
    await ended(connection);
  });

  it('leaves a stream whole that is under way', async () => {
    const { a, gateway } = await stage();
    const hold = gate();
    a.next(async (_request, answer) => {
      await answer.sseHead();
      await answer.write('data: {"choices":[]}\n\n');
      await hold.opened;
      await answer.end('data: [DONE]\n\n');
    });
    const connection = gateway.connect();
    const stream = connection.send({ body: { model: 'm', messages: MESSAGES, stream: true } });
    await stream.saw('choices');
    const refusal = connection.expect();
    connection.socket.write('garbage\r\n\r\n');
    await gateway.get('/healthz');
    hold.open();
    await stream.end();
    expect(stream.text).toBe('data: {"choices":[]}\n\ndata: [DONE]\n\n');
    expectRefusal(await refusal.end(), 400, 'malformed_request');
  });

  it.each([
    ['CONNECT', 'CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\nand what the tunnel was meant for', 405],
    ['an upgrade', get('/healthz', { headers: 'connection: upgrade\r\nupgrade: websocket\r\n' }), 200],
    ['garbage', '\x00\x01\r\n\r\n', 400],
    ['a request without a host', get('/healthz', { host: '' }), 400],
  ])('%s behind a large stream to a slow client waits for its end', async (_what, bytes, status) => {
    const { a, gateway } = await stage();
    const piece = `data: {"choices":[],"x":"${'x'.repeat(100_000)}"}\n\n`;
    const pieces = 100;
    a.next(async (_request, answer) => {
      await answer.sseHead();
      for (let i = 0; i < pieces; i++) await answer.write(piece);
      await answer.end('data: [DONE]\n\n');
    });
    const connection = gateway.connect();
    const stream = connection.send({ body: { model: 'm', messages: MESSAGES, stream: true } });
    await stream.saw('choices');
    connection.socket.pause();
    const behind = connection.expect();
    connection.socket.write(Buffer.from(bytes, 'latin1'));
    await gateway.get('/healthz');
    connection.socket.resume();
    await stream.end();
    expect([stream.ending, stream.text.length]).toEqual(['complete', piece.length * pieces + 14]);
    expect(stream.text.endsWith('data: [DONE]\n\n')).toBe(true);
    await behind.end();
    expect([behind.status, behind.ending]).toEqual([status, 'complete']);
    if (status !== 200) await ended(connection);
  });

  it('CONNECT behind several requests costs none of them its answer', async () => {
    const { a, gateway } = await stage();
    const hold = gate();
    a.always(answerAfter(hold));
    const connection = gateway.connect();
    const asked = answers(connection, `${chat().repeat(12)}CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n`, 13);
    await waitFor(() => a.requests.length === 8, 'a few were asked');
    hold.open();
    expect((await asked).map(({ status }) => status)).toEqual([...Array<number>(12).fill(200), 405]);
    await ended(connection);
  });

  it.each([12, 150])(
    'of %i requests of a client that has left, what waited is never begun',
    async (count) => {
      const { a, gateway } = await stage();
      a.always(() => {});
      const connection = gateway.connect();
      connection.socket.write(chat().repeat(count));
      await waitFor(() => a.requests.length === 8, 'a few were asked');
      connection.socket.resetAndDestroy();
      await waitFor(() => a.requests.every(({ over }) => over), 'all were aborted');
      expect(a.requests).toHaveLength(8);
    },
  );

  it('an answer that ends the connection is the last: what waited behind it is not served', async () => {
    const { a, gateway } = await stage();
    const hold = gate();
    a.always(answerAfter(hold));
    const connection = gateway.connect();
    const broken = get('/healthz', { host: '' });
    const asked = answers(connection, `${chat().repeat(8)}${broken}${chat().repeat(3)}`, 10);
    await waitFor(() => a.requests.length === 8, 'a few were asked');
    hold.open();
    expect((await asked).map(({ status }) => status)).toEqual([...Array<number>(8).fill(200), 400, 0]);
    expect(a.requests).toHaveLength(8);
  });

  it('no second answer where the broken body belongs to a request that has its answer', async () => {
    const { gateway } = await stage();
    const connection = gateway.connect();
    const head = get('/healthz', { headers: 'transfer-encoding: chunked\r\n' });
    const [answer] = await answers(connection, head);
    const second = connection.expect();
    connection.socket.write('zz\r\n');
    await second.end();
    expect([answer?.status, second.status, second.rawHead]).toEqual([200, 0, '']);
  });

  it.each(['/metrics', '/healthz', '/v1/models'])(
    'one answer to %s where its body breaks at once',
    async (path) => {
      const { gateway } = await stage();
      const connection = gateway.connect();
      const bytes = `${get(path, { headers: 'transfer-encoding: chunked\r\n' })}zz\r\n`;
      const [answer] = await answers(connection, bytes);
      expect([answer?.ending, [200, 400].includes(answer?.status ?? 0)]).toEqual(['complete', true]);
      const second = connection.expect();
      await ended(connection);
      expect([second.status, second.rawHead]).toEqual([0, '']);
      expect(gateway.messages.filter((line) => line.includes('unexpected'))).toEqual([]);
    },
  );

  it('takes no request behind one that breaks', async () => {
    const { a, gateway } = await stage();
    const connection = gateway.connect();
    const broken = chat({ host: 'host: a\r\nhost: b\r\n' });
    const [answer] = await answers(connection, `${broken}${chat()}`);
    expectRefusal(answer, 400, 'invalid_host');
    await ended(connection);
    connection.socket.write(chat());
    connection.close();
    await gateway.get('/healthz');
    expect(a.requests).toEqual([]);
  });

  it('a body that does not come in time is answered', async () => {
    const { gateway } = await stage();
    const sockets: Socket[] = [];
    gateway.server.on('connection', (socket: Socket) => void sockets.push(socket));
    const connection = gateway.connect();
    const answer = connection.expect();
    connection.socket.write(chat({ headers: 'expect: 100-continue\r\ncontent-length: 500\r\n', body: '' }));
    await waitFor(() => answer.interim.includes(100), 'the body is waited for');
    // As the server itself does it when its time is over, which is minutes away.
    const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    gateway.server.emit('clientError', late, sockets[0]);
    await answer.end();
    expect([answer.status, answer.header('connection')]).toEqual([408, 'close']);
    expect(answer.json).toMatchObject({ error: { code: 'request_timeout' } });
    await ended(connection);
  });

  it('a body that ends with the connection is refused', async () => {
    const { a, gateway } = await stage();
    const connection = gateway.connect();
    const answer = connection.expect();
    connection.socket.end(chat({ headers: 'content-length: 500\r\n' }));
    expectRefusal(await answer.end(), 400, 'malformed_request');
    expect(a.requests).toEqual([]);
  });

  it('one line tells of a request whose client leaves amid its body by a reset', async () => {
    const { a, gateway } = await stage();
    const connection = gateway.connect();
    connection.socket.write(chat({ headers: 'content-length: 500\r\nexpect: 100-continue\r\n' }));
    const answer = connection.expect();
    await waitFor(() => answer.interim.includes(100), 'its head had come');
    answer.leave();
    await gateway.logged('400 malformed_request');
    expect(a.requests).toEqual([]);
    const metrics = await gateway.metrics();
    expect(metrics.sum('llm_proxy_rejected_total', { reason: 'bad_request' })).toBe(1);
  });
});

describe('who is refused is not asked for the body first (RFC 9110 §10.1.1)', () => {
  const expecting = 'expect: 100-continue\r\n';
  it.each<[string, string, number]>([
    ['too long a body', chat({ headers: `${expecting}content-length: 5000\r\n`, body: '' }), 413],
    [
      'an unknown path',
      chat({ headers: `${expecting}content-length: 5\r\n`, body: '' }).replace('/v1', '/v3'),
      404,
    ],
    [
      'a wrong method',
      chat({ headers: `${expecting}content-length: 5\r\n`, body: '' }).replace('POST', 'PUT'),
      405,
    ],
    [
      'a wrong type',
      chat({ headers: `${expecting}content-length: 5\r\n`, body: '' }).replace(
        'application/json',
        'text/plain',
      ),
      415,
    ],
    [
      'an unknown coding',
      chat({ headers: `${expecting}content-encoding: x\r\ncontent-length: 5\r\n`, body: '' }),
      415,
    ],
    [
      'too long a coded body',
      chat({ headers: `${expecting}content-encoding: gzip\r\ncontent-length: 9000\r\n`, body: '' }),
      413,
    ],
  ])('%s', async (_what, bytes, status) => {
    const { gateway } = await stage({ server: { body_limit: '1KiB' } });
    const connection = gateway.connect();
    const [answer] = await answers(connection, bytes);
    expectRefusal(answer, status, expect.any(String) as unknown as string);
    await ended(connection);
  });

  it('a service that shuts down', async () => {
    const { gateway } = await stage();
    gateway.app.get(ServiceState).drain();
    const [answer] = await answers(
      gateway.connect(),
      chat({ headers: `${expecting}content-length: 5\r\n`, body: '' }),
    );
    expect([answer?.status, answer?.interim, answer?.header('connection')]).toEqual([503, [], 'close']);
  });

  it.each(['', 'content-length: 0\r\n'])('who sends no body is not told to send one (%j)', async (length) => {
    const { gateway } = await stage();
    const connection = gateway.connect();
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n`;
    const [answer] = await answers(connection, `${head}${expecting}${length}\r\n`);
    expect([answer?.status, answer?.interim]).toEqual([400, []]);
  });

  it('an answer is read by a client that sends its body all the same', async () => {
    const { gateway } = await stage({ server: { body_limit: '1KiB' } });
    const connection = gateway.connect();
    const length = 4 * 1024 * 1024;
    const answer = connection.expect();
    connection.socket.write(
      chat({ headers: `${expecting}content-length: ${length}\r\n`, body: 'x'.repeat(length) }),
    );
    expectRefusal(await answer.end(), 413, 'request_too_large');
  });

  it('behind an answer that is under way the word comes when its turn has come', async () => {
    const { a, gateway } = await stage();
    const hold = gate();
    a.next(answerAfter(hold));
    const connection = gateway.connect();
    const first = connection.expect();
    const second = connection.expect();
    const headers = `${expecting}content-length: ${BODY.length}\r\n`;
    connection.socket.write(`${chat()}${chat({ headers, body: '' })}`);
    await a.chat(0);
    hold.open();
    await first.end();
    await waitFor(() => second.interim.includes(100), 'the word came');
    connection.socket.write(BODY);
    await second.end();
    expect([first.status, first.interim, second.status]).toEqual([200, [], 200]);
  });
});
