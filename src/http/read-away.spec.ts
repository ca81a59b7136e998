import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { readAway } from './read-away.js';

let server: Server;
let socket: Socket;
afterEach(() => {
  socket.destroy();
  server.close();
});

let accepted: Socket[] = [];
const watched = new WeakSet<Socket>();

/** A server that refuses at once, and a client that has sent its head. */
async function refused(limitBytes: number, limitMs: number): Promise<void> {
  server = createServer((request, response) => {
    response.writeHead(413, { 'content-length': '0' }).end();
    readAway(response, limitBytes, limitMs);
    if (!watched.has(request.socket)) request.socket.once('close', () => server.emit('gone'));
    watched.add(request.socket);
  });
  accepted = [];
  server.on('connection', (one: Socket) => void accepted.push(one));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write('POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 1000000\r\n\r\n');
  await once(socket, 'data');
}

describe('readAway', () => {
  it('lets go of a request whose connection has closed', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    await refused(2_000_000, 60_000);
    expect(vi.getTimerCount()).toBe(1);
    const closed = new Promise((resolve) => server.once('gone', resolve));
    socket.destroy();
    await closed;
    expect(vi.getTimerCount()).toBe(0);
  });

  it('reads an ordinary rest, and keeps the connection', async () => {
    await refused(2_000_000, 60_000);
    socket.write(Buffer.alloc(1_000_000));
    socket.write('POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toContain('413');
  });

  it('leaves nothing on a connection that is kept', async () => {
    await refused(2_000_000, 60_000);
    const [kept] = accepted;
    const before = kept?.listenerCount('close');
    socket.write(Buffer.alloc(1_000_000));
    for (let i = 0; i < 20; i++) {
      socket.write('POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nhello');
      await once(socket, 'data');
    }
    expect(kept?.listenerCount('close')).toBeLessThanOrEqual(before ?? 0);
  });

  it('closes the connection of whoever goes on sending', async () => {
    await refused(10_000, 60_000);
    // Trap: `once` rejects with the reset that may come first.
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(Buffer.alloc(500_000));
    await closed;
    expect(socket.destroyed).toBe(true);
  });

  it('ends such a connection behind the answer, so that it can be read', async () => {
    server = createServer((request, response) => {
      readAway(response, 10_000, 60_000);
      // What was asked before is answered meanwhile.
      request.socket.once('pause', () => response.writeHead(413, { 'content-length': '4' }).end('late'));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('error', () => {});
    let text = '';
    socket.on('data', (bytes: Buffer) => (text += bytes.toString()));
    const ended = new Promise((resolve) => socket.once('end', resolve));
    socket.write('POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 1000000\r\n\r\n');
    socket.write(Buffer.alloc(900_000));
    await ended;
    expect(text).toMatch(/^HTTP\/1\.1 413 [^]*late$/);
  });

  it.each([
    ['GET', 80_000, true],
    ['GET', 50_000, false],
    ['OPTIONS', 80_000, true],
    ['POST', 80_000, false],
  ])('reads little where no body belongs: %s, %i bytes', async (method, bytes, closes) => {
    server = createServer((_request, response) => {
      readAway(response);
      response.writeHead(200, { 'content-length': '0' }).end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('error', () => {});
    let answers = 0;
    const over = new Promise<boolean>((resolve) => {
      socket.on('data', () => {
        if (++answers === 2) resolve(false);
      });
      socket.on('end', () => resolve(true));
    });
    socket.write(`${method} / HTTP/1.1\r\nhost: h\r\ncontent-length: ${bytes}\r\n\r\n`);
    await once(socket, 'data');
    socket.write(Buffer.alloc(bytes));
    socket.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n');
    expect(await over).toBe(closes);
  });

  it('closes the connection of whoever sends too slowly', async () => {
    await refused(2_000_000, 50);
    await new Promise((resolve) => socket.once('close', resolve));
    expect(socket.destroyed).toBe(true);
  });
});
