import { createServer, type IncomingMessage, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { waitFor } from '../../test/support/wait-for.js';
import { BodyReader, type BodyResult } from './body-reader.js';
import { JsonBody } from './request-body.js';

const LIMIT = 1000;
let server: Server;
let results: BodyResult[] = [];
let requests: IncomingMessage[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    requests.push(request);
    request.on('end', () => response.end());
    new BodyReader(request, LIMIT, new JsonBody(), (result) => results.push(result)).start();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

function open(head: string): Socket {
  results = [];
  requests = [];
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => {}).resume();
  socket.write(`POST / HTTP/1.1\r\nhost: x\r\n${head}\r\n\r\n`);
  return socket;
}

interface Sent {
  readonly coding?: string;
  /** Bytes in one chunk. */
  readonly size?: number;
  readonly chunked?: boolean;
}

async function read(
  body: Buffer | string,
  { coding, size = 1 << 20, chunked = true }: Sent = {},
): Promise<BodyResult> {
  const bytes = Buffer.from(body as string);
  const framing = chunked ? 'transfer-encoding: chunked' : `content-length: ${bytes.length}`;
  const socket = open(coding === undefined ? framing : `${framing}\r\ncontent-encoding: ${coding}`);
  for (let i = 0; i < bytes.length; i += size) {
    const piece = bytes.subarray(i, i + size);
    if (!chunked) socket.write(piece);
    else
      socket.write(
        Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]),
      );
  }
  if (chunked) socket.write('0\r\n\r\n');
  await waitFor(() => results.length > 0 && requests[0]?.complete === true, 'the body was read');
  socket.destroy();
  expect(results).toHaveLength(1);
  return results[0] as BodyResult;
}

const errorOf = (result: BodyResult) =>
  'error' in result ? `${result.error.status} ${result.error.code}` : 'none';
const textOf = (result: BodyResult) =>
  'document' in result ? result.document.toBuffer().toString() : errorOf(result);

const text = '{"model":"m","text":"é🙂","n":1.0}';

describe('BodyReader', () => {
  it('gives the bytes of a JSON object back, cut anywhere', async () => {
    for (const size of [1, 2, 3, 7, 100]) expect(textOf(await read(text, { size }))).toBe(text);
    expect(textOf(await read(text, { chunked: false }))).toBe(text);
  });

  it.each([
    ['gzip', gzipSync(text)],
    ['x-gzip', gzipSync(text)],
    [' GZip ', gzipSync(text)],
    ['deflate', deflateSync(text)],
    ['deflate', deflateRawSync(text)],
    ['br', brotliCompressSync(text)],
    ['zstd', zstdCompressSync(text)],
    ['zstd', Buffer.concat([zstdCompressSync(text.slice(0, 3)), zstdCompressSync(text.slice(3))])],
    ['identity', Buffer.from(text)],
  ])('decodes %s', async (coding, bytes) => {
    for (const size of [1, 1000]) expect(textOf(await read(bytes, { coding, size }))).toBe(text);
  });

  it.each([
    ['compress', Buffer.from(text), '415 unsupported_content_encoding'],
    ['gzip, br', gzipSync(text), '415 unsupported_content_encoding'],
    ['gzip', Buffer.from(text), '400 invalid_content_encoding'],
    ['gzip', gzipSync(text).subarray(0, -6), '400 invalid_content_encoding'],
    ['br', Buffer.from(text), '400 invalid_content_encoding'],
    ['gzip', gzipSync('{"a":'), '400 invalid_json'],
    ['gzip', Buffer.alloc(0), '400 invalid_json'],
  ])('refuses a bad body coded %s (%#)', async (coding, bytes, code) => {
    expect(errorOf(await read(bytes, { coding }))).toBe(code);
  });

  it.each([
    ['gzip', gzipSync(text)],
    ['deflate', deflateSync(text)],
    ['deflate', deflateRawSync(text)],
    ['br', brotliCompressSync(text)],
    ['zstd', zstdCompressSync(text)],
  ])('refuses what stands behind the end of the data: %s (%#)', async (coding, bytes) => {
    for (const stray of [Buffer.from('stray'), Buffer.from('{"a":1}'), Buffer.alloc(5), Buffer.from('}')])
      for (const size of [1, bytes.length, 1000])
        expect(errorOf(await read(Buffer.concat([bytes, stray]), { coding, size }))).toBe(
          '400 invalid_content_encoding',
        );
  });

  it.each(['', ' ', '{', '[]', '"x"', '1', 'null', '{"a":1}}', '{"a" 1}', '{"a":[}', 'data: x'])(
    'refuses %j as no JSON object',
    async (body) => {
      expect(errorOf(await read(body))).toBe('400 invalid_json');
    },
  );

  it('takes a body of just the limit and refuses one byte more, told by its length or not', async () => {
    const exact = `{"a":"${'x'.repeat(LIMIT - 8)}"}`;
    expect(exact).toHaveLength(LIMIT);
    for (const chunked of [true, false]) {
      expect(textOf(await read(exact, { chunked }))).toBe(exact);
      expect(errorOf(await read(`${exact} `, { chunked }))).toBe('413 request_too_large');
    }
  });

  it('counts the decoded size', async () => {
    const exact = `{"a":"${'x'.repeat(LIMIT - 8)}"}`;
    expect(textOf(await read(gzipSync(exact), { coding: 'gzip' }))).toBe(exact);
    expect(errorOf(await read(gzipSync(`${exact} `), { coding: 'gzip' }))).toBe('413 request_too_large');
    expect(errorOf(await read(gzipSync(Buffer.alloc(30_000_000, 0x20)), { coding: 'gzip' }))).toBe(
      '413 request_too_large',
    );
  });

  it('refuses a coded body that is far longer than the limit, whatever it decodes to', async () => {
    const nothing = Buffer.concat(Array.from({ length: 1000 }, () => gzipSync('')));
    for (const chunked of [true, false])
      expect(errorOf(await read(nothing, { coding: 'gzip', chunked }))).toBe('413 request_too_large');
  });

  it('names the place of the mistake, never the text', async () => {
    const result = await read('{"a":secret}');
    expect('error' in result && result.error.message).toMatch(/ at byte \d+\.$/);
    expect('error' in result && result.error.message).not.toContain('secret');
  });

  it.each(['', '\r\ncontent-encoding: gzip'])(
    'says nothing of a client that leaves in the middle (%j)',
    async (coding) => {
      const socket = open(`content-length: 500${coding}`);
      socket.write(coding === '' ? '{"a":' : gzipSync(text).subarray(0, 20));
      await waitFor(() => requests.length === 1, 'the request came');
      socket.resetAndDestroy();
      await waitFor(() => requests[0]?.destroyed === true, 'the server saw it');
      for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
      expect(results).toEqual([]);
    },
  );

  it('answers at once where the length alone is too much', async () => {
    const socket = open('content-length: 100000');
    await waitFor(() => results.length === 1, 'the refusal');
    expect(errorOf(results[0] as BodyResult)).toBe('413 request_too_large');
    socket.destroy();
  });
});
