import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ProviderConfig } from '../config/gateway-config.js';
import { BlackHole } from '../../test/support/black-hole.js';
import { waitFor } from '../../test/support/wait-for.js';
import { ProviderClient } from './provider-client.js';
import { routeTo } from './provider-route.js';
import { describeTransportError } from './transport-failure.js';
import type { Connector } from './tunnel.js';
import { UpstreamCall } from './upstream-call.js';

let hole: BlackHole;

beforeAll(async () => {
  hole = await BlackHole.open();
});
afterAll(() => hole.close());

describe('a provider that does not answer to connects', () => {
  it('lets go at once of a call that is aborted while it connects', async () => {
    const client = new ProviderClient({
      url: `http://127.0.0.1:${hole.port}/v1`,
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

  it.each([
    ['connect timeout', null],
    ['proxy: connect timeout', 'http:'],
    ['connect timeout, connecting to the proxy', 'https:'],
  ])('is given up after the time for connecting: %s', async (reason, viaFor) => {
    const origin = `http://127.0.0.1:${hole.port}`;
    const proxy = viaFor === null ? null : { origin, authorization: null, shown: origin, source: 'proxy' };
    const url = viaFor === null ? origin : `${viaFor}//provider.test`;
    const { connector } = routeTo({ url, proxy, tls: null }, { connectTimeoutMs: 50, headLimitBytes: 1024 });
    const told: string[] = [];
    const target = { hostname: '127.0.0.1', host: 'x', protocol: viaFor ?? 'http:', port: String(hole.port) };
    (connector as unknown as Connector)(target, (...[error]) => {
      told.push(describeTransportError(error).reason);
    });
    await waitFor(() => told.length > 0, 'it is given up');
    expect(told).toEqual([reason]);
  });
});
