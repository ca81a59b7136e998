import { createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { listen, cleanUp, urlOf } from '../../test/support/told-call.js';
import { waitFor } from '../../test/support/wait-for.js';
import type { ProxyConfig } from '../config/gateway-config.js';
import { routeTo } from './provider-route.js';
import { describeTransportError } from './transport-failure.js';
import type { Connector } from './tunnel.js';

afterEach(cleanUp);

const LIMITS = { connectTimeoutMs: 60, headLimitBytes: 1024 };
const proxyAt = (origin: string, authorization: string | null = null): ProxyConfig => ({
  origin,
  authorization,
  shown: origin,
  source: 'proxy',
});
const TARGET = { hostname: 'provider.test', host: 'provider.test', protocol: 'https:', port: '' };

interface Opened {
  readonly socket: Socket;
  /** What the connector called back with, each time. */
  readonly told: (string | Socket)[];
}

function open(server: Server, limits = LIMITS, url = 'https://provider.test/v1', target = TARGET): Opened {
  const origin = new URL(urlOf(server)).origin;
  const route = routeTo({ url, proxy: proxyAt(origin), tls: null }, limits);
  const told: (string | Socket)[] = [];
  const socket = (route.connector as unknown as Connector)(target, (...[error, ready]) => {
    told.push(error === null ? ready : describeTransportError(error).reason);
  });
  return { socket, told };
}

/** A proxy whose connections this handles. */
async function proxy(handle: (socket: Socket, head: string) => void): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (bytes) => handle(socket, bytes.toString('latin1')));
  });
  await listen(server);
  return server;
}

describe('routeTo', () => {
  it('keeps the path of the url, without a proxy and through a tunnel', () => {
    const none = routeTo({ url: 'https://h.test:8443/v1', proxy: null, tls: null }, LIMITS);
    expect(none).toMatchObject({ origin: 'https://h.test:8443', basePath: '/v1', absoluteForm: null });
    expect(routeTo({ url: 'http://h.test', proxy: null, tls: null }, LIMITS).basePath).toBe('');
    const tunnel = routeTo(
      { url: 'https://h.test/v1', proxy: proxyAt('http://p:1', 'Basic x'), tls: null },
      LIMITS,
    );
    expect(tunnel).toMatchObject({ origin: 'https://h.test', basePath: '/v1', absoluteForm: null });
  });

  it('asks a proxy for the whole url of an http provider', () => {
    const url = 'http://h.test:8080/v1';
    expect(routeTo({ url, proxy: proxyAt('http://p:1'), tls: null }, LIMITS)).toMatchObject({
      origin: 'http://p:1',
      basePath: '/v1',
      absoluteForm: { origin: 'http://h.test:8080', headers: ['host', 'h.test:8080'] },
    });
    expect(
      routeTo({ url, proxy: proxyAt('http://p:1', 'Basic x'), tls: null }, LIMITS).absoluteForm?.headers,
    ).toEqual(['host', 'h.test:8080', 'proxy-authorization', 'Basic x']);
  });
});

describe('a tunnel', () => {
  it('is asked for with host and port, IPv6 in brackets', async () => {
    const heads: string[] = [];
    const server = await proxy((socket, head) => {
      heads.push(head);
      socket.destroy();
    });
    for (const target of [TARGET, { ...TARGET, hostname: 'fd00::5', host: '[fd00::5]:8443', port: '8443' }]) {
      const { told } = open(server, LIMITS, 'https://provider.test', target);
      await waitFor(() => told.length > 0, 'an answer');
    }
    expect(heads).toEqual([
      'CONNECT provider.test:443 HTTP/1.1\r\nhost: provider.test:443\r\n\r\n',
      'CONNECT [fd00::5]:8443 HTTP/1.1\r\nhost: [fd00::5]:8443\r\n\r\n',
    ]);
  });

  it.each<[what: string, bytes: string, reason: string]>([
    ['while the proxy is silent', '', 'connect timeout, waiting for the answer of the proxy to CONNECT'],
    [
      'in the middle of its answer',
      'HTTP/1.1 200 O',
      'connect timeout, waiting for the answer of the proxy to CONNECT',
    ],
    [
      'in the TLS handshake',
      'HTTP/1.1 200 OK\r\n\r\n',
      'connect timeout, during the TLS handshake with the provider',
    ],
  ])('gives up after the time for connecting, %s', async (_what, bytes, reason) => {
    const ends: string[] = [];
    const server = await proxy((socket) => {
      socket.on('close', () => ends.push('closed'));
      socket.on('data', () => {});
      socket.write(bytes);
    });
    const { socket, told } = open(server);
    await waitFor(() => told.length > 0, 'it gave up');
    expect(told).toEqual([reason]);
    await waitFor(() => ends.length > 0 && socket.closed, 'the socket is closed');
    expect(told).toHaveLength(1);
  });

  it('that is destroyed while it opens leaves no timer behind', async () => {
    const server = await proxy(() => {});
    const started = vi.spyOn(globalThis, 'setTimeout');
    const cleared = vi.spyOn(globalThis, 'clearTimeout');
    const { socket } = open(server, { ...LIMITS, connectTimeoutMs: 60_000 });
    const at = started.mock.calls.findIndex(([, delayMs]) => delayMs === 60_000);
    const timer = started.mock.results[at]?.value as NodeJS.Timeout;
    expect(timer).toBeDefined();
    await waitFor(() => !socket.connecting, 'connected');
    socket.destroy();
    await waitFor(() => cleared.mock.calls.some(([each]) => each === timer), 'the timer is cleared');
    vi.restoreAllMocks();
  });

  it('bytes that come with the answer to CONNECT are not lost', async () => {
    // What a provider never sends first; but then TLS must see it, and refuse it.
    const server = await proxy((socket) => socket.write('HTTP/1.1 200 OK\r\n\r\nSSH-2.0-not-tls\r\n'));
    const { told } = open(server, { ...LIMITS, connectTimeoutMs: 5_000 });
    await waitFor(() => told.length > 0, 'an answer');
    expect(told).toEqual([
      'TLS: what answers at this port does not speak TLS; should the url begin with http://?',
    ]);
  });
});

describe('an http provider through a proxy', () => {
  it('a proxy that cannot be reached is named', async () => {
    const server = createServer();
    await listen(server);
    const url = urlOf(server);
    await new Promise((resolve) => server.close(resolve));
    const route = routeTo({ url: 'http://h.test', proxy: proxyAt(new URL(url).origin), tls: null }, LIMITS);
    const told: string[] = [];
    (route.connector as unknown as Connector)({ ...TARGET, protocol: 'http:' }, (...[error]) => {
      told.push(describeTransportError(error).reason);
    });
    await waitFor(() => told.length > 0, 'an answer');
    expect(told).toEqual(['proxy: connection refused']);
  });
});
