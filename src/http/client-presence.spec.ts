import { createServer, type Server, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { waitFor } from '../../test/support/wait-for.js';
import { ClientPresence } from './client-presence.js';

interface Seen {
  readonly response: ServerResponse;
  readonly presence: ClientPresence;
  ended: number;
  left: number;
}

let server: Server;
let seen: Seen[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    const entry: Seen = {
      response,
      presence: new ClientPresence(request, response, () => entry.ended++),
      ended: 0,
      left: 0,
    };
    entry.presence.onLeft = () => entry.left++;
    request.resume();
    seen.push(entry);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

beforeEach(() => {
  seen = [];
});

async function client(requests: number): Promise<Socket> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => {}).resume();
  socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}'.repeat(requests));
  await waitFor(() => seen.length === requests, 'the requests came');
  return socket;
}

const counts = () => seen.map(({ ended, left }) => `${ended}/${left}`);

describe('ClientPresence', () => {
  it('ends once with a whole answer, and the client has not left', async () => {
    const socket = await client(1);
    expect(counts()).toEqual(['0/0']);
    seen[0]?.response.end('x');
    await waitFor(() => seen[0]?.ended === 1, 'the end');
    socket.destroy();
    await waitFor(() => socket.closed, 'the close');
    expect(counts()).toEqual(['1/0']);
    expect(seen[0]?.presence.left).toBe(false);
  });

  it('does not take the end of the request for the leaving of the client', async () => {
    const socket = await client(1);
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setTimeout(resolve, 1));
    expect(counts()).toEqual(['0/0']);
    socket.destroy();
  });

  it.each(['destroy', 'resetAndDestroy'] as const)('hears of a client that leaves by %s', async (how) => {
    const socket = await client(1);
    seen[0]?.response.write('x');
    socket[how]();
    await waitFor(() => seen[0]?.left === 1, 'the leaving');
    expect(counts()).toEqual(['1/1']);
    expect(seen[0]?.presence.left).toBe(true);
  });

  it('hears of it for every request that waits behind another one on the connection', async () => {
    const socket = await client(3);
    socket.resetAndDestroy();
    await waitFor(() => seen.every(({ left }) => left === 1), 'all three left');
    expect(counts()).toEqual(['1/1', '1/1', '1/1']);
  });

  it('keeps those apart that were answered before the connection ended', async () => {
    const socket = await client(2);
    seen[0]?.response.end('x');
    await waitFor(() => seen[0]?.ended === 1, 'the first end');
    socket.resetAndDestroy();
    await waitFor(() => seen[1]?.left === 1, 'the second left');
    expect(counts()).toEqual(['1/0', '1/1']);
  });

  it('adds no listener to the socket for each of its requests', async () => {
    const socket = await client(1);
    const before = seen[0]?.response.req.socket.listenerCount('close');
    for (let i = 0; i < 20; i++) {
      seen.at(-1)?.response.end('x');
      const { length } = seen;
      socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n');
      await waitFor(() => seen.length > length, 'the next request');
    }
    expect(seen.at(-1)?.response.req.socket.listenerCount('close')).toBe(before);
    socket.destroy();
  });
});
