import { createServer, type AddressInfo, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { RedisProxy } from '../../../test/support/redis-proxy.js';
import { describeWithRedis, RedisServer } from '../../../test/support/redis-server.js';
import { waitFor } from '../../../test/support/wait-for.js';
import { RedisLink } from './redis-link.js';

function linkTo(url: string) {
  const seen = { connections: 0, losses: [] as string[], late: 0 };
  const link = new RedisLink({ url, timeoutMs: 250 }, () => ({ channels: ['channel'], probe: 'probe' }), {
    connected: () => seen.connections++,
    lost: (reason) => seen.losses.push(reason),
    message: () => {},
    late: () => seen.late++,
  });
  onTestFinished(() => link.close());
  link.open();
  return Object.assign(seen, { link });
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

  it('tells of an answer that came too late, and not of one that never came', async () => {
    const server = await RedisServer.start();
    onTestFinished(() => server.kill());
    const proxy = await RedisProxy.start(server.port);
    onTestFinished(() => proxy.close());
    const seen = linkTo(proxy.url);
    await waitFor(() => seen.connections === 1, 'it was connected');
    await seen.link.command(['PING']);
    expect(seen.late).toBe(0);
    proxy.freeze();
    await expect(seen.link.command(['PING'])).rejects.toThrow('no answer in 250 ms');
    expect(seen.late).toBe(0);
    proxy.thaw();
    await waitFor(() => seen.late > 0, 'the late answer was told');
    expect(seen.losses).toEqual([]);
    proxy.freeze();
    const before = seen.late;
    await expect(seen.link.command(['PING'])).rejects.toThrow();
    proxy.cut();
    await waitFor(() => seen.losses.length > 0, 'the loss was told');
    expect(seen.late).toBe(before);
  });
});
