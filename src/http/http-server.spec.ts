import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawConnection } from '../../test/support/raw-client.js';
import { waitFor } from '../../test/support/wait-for.js';
import { setEdgeContext } from './edge-context.js';
import type { EdgeService } from './edge.service.js';
import { awaitsContinue } from './request-rules.js';
import { createHttpServer } from './http-server.js';

let fastify: FastifyInstance;
let port = 0;
let handled = 0;
let puts = 0;
let late: (() => void) | null = null;
let rest: (() => void) | null = null;

beforeAll(async () => {
  const edge = {
    route: (request: IncomingMessage) => {
      const context = {
        resolved: undefined,
        target: { path: '/', query: '', isSound: true },
        requestId: '',
        startedAt: 0,
        headers: [],
      };
      const state = { caller: null, reader: null, presence: null, response: null };
      const kept = { explains: false, continueDue: awaitsContinue(request) };
      setEdgeContext(request, { ...context, ...state, ...kept, form: 'openai' });
      return request.url;
    },
    admit: (_: unknown, __: unknown, done: () => void) => done(),
    refusedUnread: () => 'the-id',
  };
  fastify = createHttpServer({ bodyLimitBytes: 1000, edge: () => edge as unknown as EdgeService });
  fastify.post('/', (_request, reply) => {
    handled++;
    reply.hijack();
    reply.raw.writeHead(200, { 'content-length': '10' });
    reply.raw.write('half');
    rest = () => reply.raw.end(' of it');
  });
  fastify.get('/late', (_request, reply) => {
    reply.hijack();
    late = () => reply.raw.end('late');
  });
  fastify.put('/', (_request, reply) => {
    puts++;
    reply.hijack();
    reply.raw.writeHead(200, { 'content-length': '3' });
    reply.raw.end(Buffer.from('put'));
  });
  fastify.get('/', (_request, reply) => void reply.send('ok'));
  await fastify.listen({ port: 0, host: '127.0.0.1' });
  port = (fastify.server.address() as AddressInfo).port;
});

afterAll(async () => {
  fastify.server.closeAllConnections();
  await fastify.close();
});

async function answerTo(bytes: string) {
  const connection = new RawConnection(port);
  const answer = connection.expect();
  connection.socket.write(bytes);
  await answer.end();
  return { answer, connection };
}

describe('a request that is no HTTP', () => {
  it.each([
    ['garbage', 'hello\r\n\r\n', 400, 'malformed_request'],
    ['a bad header', 'GET / HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n', 400, 'malformed_request'],
    [
      'two lengths',
      'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n',
      400,
      'malformed_request',
    ],
    [
      'length and chunks',
      'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n',
      400,
      'malformed_request',
    ],
    ['a control character in the path', 'GET /\x01 HTTP/1.1\r\nhost: x\r\n\r\n', 400, 'malformed_request'],
    [
      'an endless head',
      `GET / HTTP/1.1\r\nhost: x\r\nx-long: ${'a'.repeat(70_000)}\r\n\r\n`,
      431,
      'headers_too_large',
    ],
  ])('%s is answered in the form of OpenAI, and the connection ends', async (_name, bytes, status, code) => {
    const { answer, connection } = await answerTo(bytes);
    expect(answer.status).toBe(status);
    expect(answer.ending).toBe('complete');
    expect(answer.header('connection')).toBe('close');
    expect(answer.json).toMatchObject({ error: { code, type: 'invalid_request_error', param: null } });
    await waitFor(() => connection.closed || connection.socket.readableEnded, 'the connection ended');
    connection.close();
  });

  it('never lands in the middle of an answer that is under way', async () => {
    const connection = new RawConnection(port);
    const before = handled;
    const answer = connection.send({ path: '/', body: {} });
    const refusal = connection.expect();
    await answer.saw('half');
    connection.socket.write('garbage\r\n\r\n');
    rest?.();
    await answer.end();
    expect(handled).toBe(before + 1);
    expect([answer.ending, answer.text]).toEqual(['complete', 'half of it']);
    await refusal.end();
    expect([refusal.status, refusal.header('x-request-id')]).toEqual([400, 'the-id']);
    expect(refusal.json).toMatchObject({ error: { code: 'malformed_request' } });
  });
});

describe('Expect: 100-continue', () => {
  it.each([1, 2])(
    'is answered outside of the answers, also behind a request that is under way (%i requests)',
    async (count) => {
      const connection = new RawConnection(port);
      const first = count === 2 ? connection.expect() : null;
      const answer = connection.expect();
      const waiting = 'GET /late HTTP/1.1\r\nhost: x\r\n\r\n';
      const head = 'PUT / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n';
      connection.socket.write(`${first === null ? '' : waiting}${head}{}`);
      await waitFor(() => puts === count, 'the request came');
      late?.();
      await first?.end();
      await answer.end();
      expect(answer.text).toBe('put');
      connection.close();
    },
  );
});

describe('heads', () => {
  it('may be 32 KiB large', async () => {
    const connection = new RawConnection(port);
    const answer = await connection.send({ path: '/', headers: { 'x-long': 'a'.repeat(32 * 1024) } }).end();
    expect(answer.status).toBe(200);
    connection.close();
  });
});
