import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { call, cleanUp, clientOf, listen, scripted, urlOf, whole } from '../../test/support/told-call.js';
import { gate, waitFor } from '../../test/support/wait-for.js';

afterEach(cleanUp);

describe('UpstreamCall', () => {
  it('tells the head, the body, then over and end, in this order', async () => {
    const upstream = await scripted();
    const told = await whole(clientOf(upstream.url));
    expect(told.events).toEqual(['head 200', 'over', 'end']);
    expect(told.text).toContain('"hello"');
    expect(upstream.last.target).toBe('/v1/chat/completions');
  });

  it('is over once when it is aborted, with its socket closed, and tells nothing more', async () => {
    const upstream = await scripted(async (_, answer) => {
      await answer.sseHead();
      await answer.write('data: 1\n\n');
    });
    const client = clientOf(upstream.url);
    const { told, call: running } = call(client);
    running.start();
    await waitFor(() => told.text !== '', 'the first event came');
    running.abort();
    running.abort();
    await waitFor(() => told.over > 0, 'over');
    await waitFor(() => upstream.last.over, 'the provider saw the close');
    expect(told.events).toEqual(['head 200', 'over']);
    expect(upstream.last.aborted).toBe(true);
    expect(client.idleConnections).toBe(0);
  });

  it('can be aborted before it was connected', async () => {
    const upstream = await scripted();
    const { told, call: running } = call(clientOf(upstream.url));
    running.start();
    running.abort();
    await waitFor(() => told.over === 1, 'over');
    expect(told.events).toEqual(['over']);
    expect(running.sent).toBe(false);
    await waitFor(() => upstream.sockets.size === 0, 'no socket is left');
    expect(upstream.requests).toHaveLength(0);
  });

  it('can be aborted while its body is on its way', async () => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket.on('error', () => {}));
      socket.pause();
    });
    await listen(server);
    const body = Array.from({ length: 64 }, () => Buffer.alloc(256 * 1024, 0x20));
    const { told, call: running } = call(clientOf(urlOf(server)), { body });
    running.start();
    await waitFor(() => sockets.length === 1 && running.sent, 'connected');
    running.abort();
    await waitFor(() => told.over === 1, 'over');
    expect(told.events).toEqual(['over']);
  });

  it('hears of a refused connection', async () => {
    const server = createServer();
    await listen(server);
    const url = urlOf(server);
    server.close();
    await once(server, 'close');
    const { told, call: refused } = call(clientOf(url));
    refused.start();
    await waitFor(() => told.settled, 'the call settled');
    expect(refused.sent).toBe(false);
    expect(told.events).toEqual(['over', 'failure']);
    expect(told.failure?.reason).toBe('connection refused');
  });

  it('takes a body that the end of the connection delimits as whole, and as broken when a reset cuts it', async () => {
    const upstream = await scripted(
      async (_, answer) => {
        await answer.head(200, {}, 'close');
        await answer.end('whole');
      },
      async (_, answer) => {
        await answer.head(200, {}, 'close');
        await answer.write('half');
        await sawHalf.opened;
        answer.reset();
      },
    );
    const sawHalf = gate();
    const client = clientOf(upstream.url);
    const good = await whole(client);
    expect([good.text, ...good.events]).toEqual(['whole', 'head 200', 'over', 'end']);
    expect(client.idleConnections).toBe(0);
    const { told, call: running } = call(client);
    told.onChunk = () => {
      sawHalf.open();
      return true;
    };
    running.start();
    await waitFor(() => told.settled, 'the call settled');
    expect(told.events).toEqual(['head 200', 'over', 'failure']);
  });

  it.each([
    ['a length', { 'content-length': '100' }, 'length'],
    ['chunks', {}, 'chunked'],
  ] as const)('takes an answer in %s that ends too early as broken', async (_name, headers, framing) => {
    const upstream = await scripted(async (_, answer) => {
      await answer.head(200, headers, framing);
      await answer.write('half');
      answer.destroy();
    });
    const told = await whole(clientOf(upstream.url));
    expect(told.events).toEqual(['head 200', 'over', 'failure']);
  });

  it('takes malformed HTTP as broken', async () => {
    const upstream = await scripted(
      async (_, answer) => answer.raw('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n'),
      async (_, answer) => answer.raw('SMTP ready\r\n\r\n'),
    );
    const client = clientOf(upstream.url);
    expect((await whole(client)).events).toEqual(['head 200', 'over', 'failure']);
    const told = await whole(client);
    expect(told.events).toEqual(['over', 'failure']);
    expect(told.failure?.reason).toMatch(/malformed HTTP/);
  });

  it('passes over interim answers', async () => {
    const upstream = await scripted(async (_, answer) => {
      await answer.raw('HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\n');
      await answer.json(200, {});
    });
    expect((await whole(clientOf(upstream.url))).events).toEqual(['head 200', 'over', 'end']);
  });

  it('reads heads of 16 KiB and refuses endless ones', async () => {
    const upstream = await scripted(
      async (_, answer) => answer.json(200, {}, { 'x-long': 'a'.repeat(16 * 1024) }),
      async (_, answer) => answer.json(200, {}, { 'x-long': 'a'.repeat(128 * 1024) }),
    );
    const client = clientOf(upstream.url);
    expect((await whole(client)).events).toEqual(['head 200', 'over', 'end']);
    const told = await whole(client);
    expect(told.events).toEqual(['over', 'failure']);
    expect(told.failure?.reason).toBe('response head too large');
  });

  it('does not use a connection again on which bytes came behind the answer', async () => {
    const upstream = await scripted(async (_, answer) => {
      await answer.json(200, {});
      await answer.raw('HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nbad');
    });
    const client = clientOf(upstream.url);
    await whole(client);
    await waitFor(() => client.idleConnections === 0, 'the connection is gone');
    const told = await whole(client);
    expect(told.text).toContain('"hello"');
  });

  it('sends a body in parts, small or large, byte for byte', async () => {
    const upstream = (await scripted()).always((_, answer) => answer.json(200, {}));
    const client = clientOf(upstream.url);
    const small = [Buffer.from('{"a":'), Buffer.from('1'), Buffer.from('}')];
    const large = Array.from({ length: 40 }, (_, i) =>
      Buffer.alloc(50_000 + i, 'a'.charCodeAt(0) + (i % 26)),
    );
    for (const body of [small, large]) {
      expect((await whole(client, { body })).events).toEqual(['head 200', 'over', 'end']);
      expect(upstream.last.body.equals(Buffer.concat(body))).toBe(true);
      expect(upstream.last.header('transfer-encoding')).toBeUndefined();
    }
  });

  it('sends the same parts again on the fresh socket', async () => {
    const upstream = (await scripted()).always((_, answer) => answer.json(200, {}));
    const client = clientOf(upstream.url);
    await whole(client);
    let cut = 0;
    upstream.onHead = (_, socket) => {
      if (cut++ === 0) socket.resetAndDestroy();
    };
    const body = Array.from({ length: 8 }, () => Buffer.alloc(40_000, 0x62));
    await whole(client, { body });
    expect(upstream.last.body.equals(Buffer.concat(body))).toBe(true);
  });

  it('hears an answer that comes before the body was sent, and does not use that connection again', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => {
        socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\n{}');
        socket.resume();
      });
    });
    await listen(server);
    const client = clientOf(urlOf(server));
    const body = Array.from({ length: 64 }, () => Buffer.alloc(256 * 1024, 0x20));
    const told = await whole(client, { body });
    expect(told.events).toEqual(['head 413', 'over', 'end']);
    await waitFor(() => client.idleConnections === 0, 'the connection is gone');
  });

  it('holds the provider back while the listener asks for a pause', async () => {
    const upstream = await scripted(async (_, answer) => {
      await answer.head(200, { 'content-length': String(64 * 1024 * 1024) }, 'length');
      for (let i = 0; i < 64 && !answer.socket.destroyed; i++) await answer.raw(Buffer.alloc(1024 * 1024));
    });
    const { told, call: running } = call(clientOf(upstream.url));
    told.onChunk = () => false;
    running.start();
    await waitFor(() => told.chunks.length === 1, 'the first piece came');
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    expect(told.chunks).toHaveLength(1);
    running.resume();
    await waitFor(() => told.chunks.length === 2, 'the next piece came');
    running.abort();
    await waitFor(() => told.over === 1, 'over');
  });

  it('can be resumed from within the reading of another call', async () => {
    const upstream = await scripted(
      async (_, answer) => {
        await answer.head(200, {}, 'chunked');
        await answer.write('a');
        await answer.write('b');
        await answer.end();
      },
      async (_, answer) => answer.json(200, {}),
    );
    const client = clientOf(upstream.url);
    const paused = call(client);
    paused.told.onChunk = () => paused.told.text.length > 1;
    paused.call.start();
    await waitFor(() => paused.told.text !== '', 'the first piece came');
    const thrown: unknown[] = [];
    const other = call(client);
    other.told.onChunk = () => {
      try {
        paused.call.resume();
      } catch (error) {
        thrown.push(error);
      }
      return true;
    };
    other.call.start();
    await waitFor(() => other.told.settled, 'the other call settled');
    expect(thrown.map(String)).toEqual([]);
    await waitFor(() => paused.told.settled, 'the paused call went on');
    expect([paused.told.text, ...paused.told.events]).toEqual(['ab', 'head 200', 'over', 'end']);
  });

  it.each([
    ['a path', { path: '/v1/a b\r\nx: y' }],
    ['a header value', { headers: ['x-a', 'b\r\nx: y'] }],
    ['a header value beyond latin1', { headers: ['x-a', '\u2028'] }],
    ['a header name', { headers: ['x a', 'b'] }],
  ])('throws for %s that HTTP cannot carry, and is over', async (_name, options) => {
    const upstream = await scripted();
    const client = clientOf(upstream.url);
    for (const warm of [false, true]) {
      if (warm) await whole(client);
      const { told, call: running } = call(client, options);
      expect(() => running.start()).toThrow();
      await waitFor(() => told.over === 1, 'over');
      expect(told.events).toEqual(['over']);
    }
    expect(upstream.requests).toHaveLength(1);
  });
});
