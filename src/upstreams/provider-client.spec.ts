import { afterEach, describe, expect, it, vi } from 'vitest';
import { call, cleanUp, clientOf, scripted, whole } from '../../test/support/told-call.js';
import type { Script } from '../../test/support/scripted-upstream.js';
import { gate, waitFor } from '../../test/support/wait-for.js';

const REAL_SET_TIMEOUT = globalThis.setTimeout;

afterEach(cleanUp);

describe('ProviderClient', () => {
  it('keeps the path of the url, and needs none', async () => {
    const upstream = await scripted();
    expect(clientOf(`${upstream.url}/deep/er`).basePath).toBe('/v1/deep/er');
    expect(clientOf(`http://127.0.0.1:${upstream.port}`).basePath).toBe('');
  });

  it('uses one connection for calls in a row, and as many as there are calls at once', async () => {
    const upstream = await scripted();
    const client = clientOf(upstream.url);
    for (let i = 0; i < 3; i++) await whole(client);
    expect(upstream.connections).toBe(1);
    await Promise.all([whole(client), whole(client), whole(client)]);
    expect(upstream.connections).toBe(3);
    expect(client.idleConnections).toBe(3);
  });

  it('takes the connection that was used last', async () => {
    const hold = gate();
    const slow: Script = async (_, answer) => {
      await hold.opened;
      await answer.json(200, {});
    };
    const upstream = await scripted(slow);
    const client = clientOf(upstream.url);
    const first = call(client);
    first.call.start();
    await upstream.chat(0);
    await whole(client);
    hold.open();
    await waitFor(() => first.told.settled, 'the slow call settled');
    await whole(client);
    // Connection 1 went idle first, connection 0 last.
    expect(upstream.requests.map(({ connection }) => connection)).toEqual([0, 1, 0]);
  });

  it('retries once on a fresh socket where a kept-alive one turns out to be closed', async () => {
    const upstream = await scripted();
    const client = clientOf(upstream.url);
    await whole(client);
    let cut = 0;
    upstream.onHead = (_, socket) => {
      if (cut++ === 0) socket.resetAndDestroy();
    };
    const told = await whole(client);
    expect(told.events).toEqual(['head 200', 'over', 'end']);
    expect(upstream.connections).toBe(2);
  });

  it('retries once only, and never on a fresh socket', async () => {
    const upstream = await scripted();
    const client = clientOf(upstream.url);
    await whole(client);
    let heads = 0;
    upstream.onHead = (_, socket) => {
      heads++;
      socket.resetAndDestroy();
    };
    expect((await whole(client)).events).toEqual(['over', 'failure']);
    expect(heads).toBe(2);
    expect((await whole(client)).events).toEqual(['over', 'failure']);
    expect(heads).toBe(3);
  });

  it('does not retry where a byte of an answer had come on the reused socket', async () => {
    const upstream = await scripted();
    const client = clientOf(upstream.url);
    await whole(client);
    upstream.next(async (_, answer) => {
      await answer.raw('HTTP/1.1 200 O');
      answer.destroy();
    });
    expect((await whole(client)).events).toEqual(['over', 'failure']);
    expect(upstream.requests).toHaveLength(2);
  });

  it('does not lend a connection again that the provider closed between two requests', async () => {
    const upstream = await scripted();
    const client = clientOf(upstream.url);
    await whole(client);
    for (const socket of upstream.sockets) socket.destroy();
    await waitFor(() => client.idleConnections === 0, 'the idle connection is forgotten');
    expect((await whole(client)).events).toEqual(['head 200', 'over', 'end']);
  });

  it('closes idle connections with the client, and those that come back later', async () => {
    const hold = gate();
    const upstream = await scripted(
      async (_, answer) => answer.json(200, {}),
      async (_, answer) => {
        await hold.opened;
        await answer.json(200, {});
      },
    );
    const client = clientOf(upstream.url);
    await whole(client);
    const late = call(client);
    late.call.start();
    await upstream.chat(1);
    client.close();
    hold.open();
    await waitFor(() => late.told.settled, 'the late call settled');
    await waitFor(() => upstream.sockets.size === 0, 'no socket is left');
    expect(client.idleConnections).toBe(0);
  });

  it('uses no connection for more than five minutes, so that changes in DNS are seen', async () => {
    const upstream = await scripted();
    let nowMs = 0;
    const client = clientOf(upstream.url, { now: () => nowMs });
    await whole(client);
    nowMs = 5 * 60_000 - 1;
    await whole(client);
    expect(upstream.connections).toBe(1);
    // Too old when it would be lent again,
    nowMs = 5 * 60_000;
    await whole(client);
    expect(upstream.connections).toBe(2);
    await waitFor(() => upstream.sockets.size === 1, 'the old one is closed');
    // and too old when it comes back; while it is in use, it may become as old as it likes.
    upstream.next(async (_, answer) => {
      nowMs += 6 * 60_000;
      await answer.json(200, {});
    });
    expect((await whole(client)).events).toEqual(['head 200', 'over', 'end']);
    expect(client.idleConnections).toBe(0);
    await waitFor(() => upstream.sockets.size === 0, 'no socket is left');
    expect(upstream.connections).toBe(2);
  });

  it('keeps no idle connection longer because a provider asks for it', async () => {
    const upstream = await scripted();
    const { told, call: asked } = call(clientOf(upstream.url));
    upstream.next((_, answer) => answer.json(200, {}, { 'keep-alive': 'timeout=600' }));
    const delays: unknown[] = [];
    const spy = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((
      ...args: Parameters<typeof setTimeout>
    ) => {
      delays.push(args[1]);
      return REAL_SET_TIMEOUT(...args);
    }) as typeof setTimeout);
    asked.start();
    await waitFor(() => told.settled, 'settled');
    spy.mockRestore();
    expect(delays.filter((ms) => typeof ms === 'number' && ms > 20_000)).toEqual([]);
  });
});
