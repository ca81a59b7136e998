import { createServer, type AddressInfo, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { describeWithRedis, RedisServer } from '../../../test/support/redis-server.js';
import { waitFor } from '../../../test/support/wait-for.js';
import { RedisLink } from './redis-link.js';

function linkTo(url: string) {
  const seen = { connections: 0, losses: [] as string[] };
  const link = new RedisLink({ url, timeoutMs: 250 }, () => ({ channels: ['channel'], probe: 'probe' }), {
    connected: () => seen.connections++,
    lost: (reason) => seen.losses.push(reason),
    message: () => {},
  });
  onTestFinished(() => link.close());
  link.open();
  return seen;
}

describeWithRedis('RedisLink', () => {
  it('tries anew where its connection is taken and nothing is ever answered', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => {
      socket.on('error', () => {});
      sockets.push(socket.resume());
    });
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      silent.close();
      for (const socket of sockets) socket.destroy();
    });
    const seen = linkTo(`redis://127.0.0.1:${(silent.address() as AddressInfo).port}`);
    await waitFor(() => sockets.length > 1, 'it came again');
    expect(seen.losses).toContain('it does not answer');
    expect(seen.connections).toBe(0);
    await waitFor(() => sockets[0]?.destroyed === true, 'the first connection was let go of');
  });

  it('is there again once a frozen Redis goes on, however often it had tried', async () => {
    const server = await RedisServer.start();
    onTestFinished(() => server.kill());
    const seen = linkTo(server.url);
    await waitFor(() => seen.connections === 1, 'it was connected');
    server.signal('SIGSTOP');
    await waitFor(() => seen.losses.length > 1, 'it tried anew, in vain');
    server.signal('SIGCONT');
    await waitFor(() => seen.connections === 2, 'it was there again');
  });
});
