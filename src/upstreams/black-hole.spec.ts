import { type ChildProcess, spawn } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ProviderConfig } from '../config/gateway-config.js';
import { waitFor } from '../../test/support/wait-for.js';
import { ProviderClient } from './provider-client.js';
import { UpstreamCall } from './upstream-call.js';

/** Listens, then never takes a connection again: its event loop stands still. */
const SERVER = `
const server = require('node:net').createServer();
server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
  require('node:fs').writeSync(1, server.address().port + '\\n');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60000);
});`;

let child: ChildProcess;
let port = 0;
const fillers: Socket[] = [];

beforeAll(async () => {
  child = spawn(process.execPath, ['-e', SERVER], { stdio: ['ignore', 'pipe', 'inherit'] });
  child.stdout?.once('data', (text: Buffer) => (port = Number(text.toString())));
  await waitFor(() => port > 0, 'the server listens');
  // Fills the backlog: what is not accepted by the kernel stays connecting.
  for (let i = 0; i < 8; i++) fillers.push(connect(port, '127.0.0.1').on('error', () => {}));
  await waitFor(() => fillers.some(({ connecting }) => !connecting), 'the kernel took the first connections');
});

afterAll(() => {
  for (const socket of fillers) socket.destroy();
  child.kill('SIGKILL');
});

describe('a provider that does not answer to connects', () => {
  it('lets go at once of a call that is aborted while it connects', async () => {
    const client = new ProviderClient({
      url: `http://127.0.0.1:${port}/v1`,
      proxy: null,
      tls: null,
    } as ProviderConfig);
    const events: string[] = [];
    const body = [Buffer.from('{}')];
    const listener = {
      onHead: () => events.push('head'),
      onData: () => true,
      onEnd: () => events.push('end'),
      onFailure: () => events.push('failure'),
    };
    const request = { method: 'POST' as const, path: '/v1/x', headers: [], body, bodyBytes: 2 };
    const call = new UpstreamCall(client, request, listener, () => events.push('over'));
    call.start();
    for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
    expect(events).toEqual([]);
    call.abort();
    await waitFor(() => events.length > 0, 'over');
    expect(events).toEqual(['over']);
    client.close();
  });
});
