import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { connectTo, RawConnection } from '../../test/support/raw-client.js';
import { waitFor } from '../../test/support/wait-for.js';
import { inTurn } from './request-turns.js';

let server: Server;
let connection: RawConnection;
let sockets: Socket[] = [];
let arrived = 0;
let served = 0;
let atOnce = false;
let started: ServerResponse[] = [];

beforeEach(async () => {
  sockets = [];
  started = [];
  arrived = served = 0;
  atOnce = false;
  server = createServer((request, response) => {
    arrived++;
    response.on('finish', () => served++);
    const start = () => {
      if (atOnce) response.end();
      else started.push(response);
    };
    inTurn(request.socket, response, start);
  });
  server.on('connection', (socket) => void sockets.push(socket));
  connection = await connectTo(server);
});

afterEach(() => {
  connection.close();
  server.closeAllConnections();
  server.close();
});

const request = (path: number | string) => `GET /${path} HTTP/1.1\r\nhost: x\r\n\r\n`;

it('starts a few of many requests in one packet, and the next when an answer has left', async () => {
  const answers = Array.from({ length: 30 }, () => connection.expect());
  connection.socket.write(Array.from(answers, (_, i) => request(i)).join(''));
  await waitFor(() => arrived === 30, 'all requests came');
  expect(started).toHaveLength(8);
  // Out of order: answers leave in the order of the requests all the same.
  started[1]?.end('/1');
  started[0]?.end('/0');
  await answers[1]?.end();
  await waitFor(() => started.length === 10, 'two more began');
  for (let i = 2; i < 30; i++) {
    await waitFor(() => started.length > i, 'its turn came');
    started[i]?.end(started[i]?.req.url);
  }
  for (const [i, answer] of answers.entries()) expect((await answer.end()).text).toBe(`/${i}`);
});

it('reads no more of a client than it can serve, and goes on where it stopped', async () => {
  const count = 20_000;
  const all = request('x').repeat(count);
  connection.socket.write(all);
  await waitFor(() => arrived > 8, 'the first packet came');
  // What could be read is read while another client is served.
  const other = new RawConnection((server.address() as AddressInfo).port);
  const answer = other.send({ path: '/other' });
  await waitFor(() => started.length === 9, 'the other one came');
  started.pop()?.end();
  await answer.end();
  other.close();
  expect(sockets[0]?.bytesRead).toBeLessThan(all.length / 2);
  expect(started).toHaveLength(8);
  atOnce = true;
  for (const response of started) response.end();
  await waitFor(() => served === count + 1, 'all were served');
});
