import { createServer, type AddressInfo, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { DONE, delta } from '../support/answers.js';
import { companyDirectory, secureUpstream, theCompany } from '../support/company.js';
import { ForwardProxy, type ForwardProxyOptions } from '../support/forward-proxy.js';
import { ScriptedUpstream } from '../support/scripted-upstream.js';
import { secretKey } from '../support/secret-watch.js';
import { stage, type Stage, type StageOptions } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

const CREDENTIALS = { user: 'gate/way', password: `${secretKey('proxy')}@:%?#` };
const TLS = { ca: 'ca.pem' };

interface Behind {
  readonly set: Stage;
  readonly proxy: ForwardProxy;
  /** The provider behind the proxy: upstream `far`, before `b`, which is reached directly. */
  readonly far: ScriptedUpstream;
}

/** Upstream `far` through a proxy, and the scripted `b` after it. */
async function behind(
  options: {
    readonly proxy?: ForwardProxyOptions;
    readonly plain?: boolean;
    readonly provider?: object;
    readonly stage?: StageOptions;
  } = {},
): Promise<Behind> {
  const proxy = await ForwardProxy.start(options.proxy);
  const far = options.plain ? await ScriptedUpstream.start() : await secureUpstream();
  const set = await stage({
    upstreams: 2,
    directory: companyDirectory(),
    ...options.stage,
    file: ([, b]) => ({
      providers: [
        {
          id: 'p-far',
          url: far.url,
          key: secretKey('far'),
          proxy: proxy.url,
          ...(options.plain ? {} : { tls: TLS }),
          ...options.provider,
        },
        { id: 'pb', url: b?.url },
      ],
      upstreams: [
        { id: 'far', provider: 'p-far', model: 'real-far', max_concurrency: 1 },
        { id: 'b', provider: 'pb', model: 'real-b' },
      ],
      models: [{ name: 'm', upstreams: ['far', 'b'] }],
    }),
  });
  return { set, proxy, far };
}

const headerOf = (head: readonly string[] | undefined, name: string): string | undefined => {
  const at = (head ?? []).findIndex((each, i) => i % 2 === 0 && each.toLowerCase() === name);
  return at < 0 ? undefined : head?.[at + 1];
};

async function failedOver({ set }: Behind, reason: string): Promise<void> {
  const answer = await set.chat().end();
  expect([answer.status, answer.header('x-llm-proxy-upstream')]).toEqual([200, 'b']);
  expect((await set.gateway.logged('upstream=far')).msg).toBeDefined();
  expect(set.gateway.messages.filter((line) => line.includes('→ failover'))).toEqual([
    `[llm-proxy] chat model=m upstream=far ${reason} → failover`,
  ]);
  expect(
    (await set.gateway.metrics()).sum('llm_proxy_requests_total', { upstream: 'far', result: 'net_err' }),
  ).toBe(1);
}

describe('an https provider behind a forward proxy', () => {
  it('is reached through one tunnel, which is kept; the proxy sees neither key nor request', async () => {
    const { far, proxy, set } = await behind();
    for (let i = 0; i < 3; i++) expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('far');
    expect(proxy.connects).toEqual([`127.0.0.1:${far.port}`]);
    expect(proxy.forwarded).toEqual([]);
    expect(proxy.heads.flat()).toEqual(['host', `127.0.0.1:${far.port}`]);
    expect(far.last.header('authorization')).toBe(`Bearer ${secretKey('far')}`);
    expect(far.last.header('proxy-authorization')).toBeUndefined();
  });

  it('asks with the name and password of the url, and shows them nowhere', async () => {
    const { far, proxy, set } = await behind({ proxy: { credentials: CREDENTIALS } });
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('far');
    const pair = Buffer.from(`${CREDENTIALS.user}:${CREDENTIALS.password}`).toString('base64');
    expect(headerOf(proxy.heads[0], 'proxy-authorization')).toBe(`Basic ${pair}`);
    expect(far.last.header('proxy-authorization')).toBeUndefined();
    expect(JSON.stringify(set.gateway.lines)).not.toContain(pair);
  });

  it('through a proxy that speaks TLS itself', async () => {
    const { cert, key } = theCompany().server;
    const { far, proxy, set } = await behind({ proxy: { tls: { cert, key }, credentials: CREDENTIALS } });
    expect(proxy.url).toMatch(/^https:/);
    expect((await set.stream().end()).text.endsWith(DONE)).toBe(true);
    expect(proxy.connects).toEqual([`127.0.0.1:${far.port}`]);
  });

  it('whose proxy says something before it answers', async () => {
    const interim = 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n';
    const { proxy, set } = await behind({ proxy: { interim } });
    for (let i = 0; i < 2; i++) expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('far');
    expect((await set.stream().end()).text.endsWith(DONE)).toBe(true);
    expect(proxy.connects).toHaveLength(1);
  });

  it('streams piece by piece', async () => {
    const { far, set } = await behind();
    const hold = gate();
    far.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('first'));
      await hold.opened;
      await answer.end(DONE);
    });
    const answer = await set.stream().saw('first');
    hold.open();
    expect((await answer.end()).text.endsWith(DONE)).toBe(true);
  });

  it('a client that leaves closes the socket to the proxy, and then the slot is free', async () => {
    const { far, proxy, set } = await behind();
    far.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('first'));
    });
    const answer = await set.stream().saw('first');
    expect(await set.gateway.inflight('far')).toBe(1);
    answer.leave();
    await waitFor(() => proxy.sockets.size === 0, 'the socket to the proxy closed');
    await waitFor(() => far.last.aborted, 'the provider saw the end');
    await waitFor(async () => (await set.gateway.inflight('far')) === 0, 'the slot is free');
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('far');
  });

  it('a client that leaves while the proxy is silent frees the slot', async () => {
    const { proxy, set } = await behind();
    let asked: Socket | null = null;
    proxy.onConnect = (socket) => (asked = socket);
    const answer = set.stream();
    await waitFor(() => asked !== null, 'the proxy was asked');
    answer.leave();
    await waitFor(() => proxy.sockets.size === 0, 'the socket to the proxy closed');
    await waitFor(async () => (await set.gateway.inflight('far')) === 0, 'the slot is free');
  });

  it('a tunnel that breaks in the middle of a stream is told in band', async () => {
    const { far, proxy, set } = await behind();
    far.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('first'));
    });
    const answer = await set.stream().saw('first');
    for (const socket of proxy.sockets) (socket as Socket).resetAndDestroy();
    await answer.end();
    expect(answer.text).toContain('upstream_stream_interrupted');
    expect(answer.text).not.toContain('[DONE]');
  });

  it('an answer that ends with its connection is not taken for whole where the tunnel was reset', async () => {
    const { far, proxy, set } = await behind();
    far.next(async (_r, answer) => {
      await answer.head(200, { 'content-type': 'application/json' }, 'close');
      await answer.raw('{"id":"x","choices":[]}');
    });
    const answer = set.chat();
    await waitFor(() => far.requests.length > 0, 'the provider was asked');
    await waitFor(() => proxy.sockets.size > 0, 'a tunnel stands');
    for (const socket of proxy.sockets) (socket as Socket).resetAndDestroy();
    expect((await answer.end()).header('x-llm-proxy-upstream')).toBe('b');
  });

  it('a kept tunnel that was closed meanwhile is no failure', async () => {
    const { far, proxy, set } = await behind();
    await set.chat().end();
    far.onHead = (_r, socket) => {
      far.onHead = null;
      socket.destroy();
    };
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('far');
    expect(proxy.connects).toHaveLength(2);
    expect(set.gateway.messages.filter((line) => line.includes('failover'))).toEqual([]);
  });

  it('probes go the same way', async () => {
    const { far, proxy, set } = await behind({ provider: { backoff: 'PT1M', probe_interval: 'PT0.02S' } });
    far.next((_r, answer) => answer.error(503, { connection: 'close' }));
    await set.chat().end();
    await set.gateway.logged('probe upstream=far ok');
    expect(far.probes.length).toBeGreaterThan(0);
    expect(proxy.connects.length).toBeGreaterThan(0);
    expect(far.connections).toBe(proxy.connects.length);
  });
});

describe('a proxy that fails is a failure of the attempt', () => {
  it('wrong name or password: 407 is never passed on', async () => {
    const set = await behind({
      proxy: { credentials: CREDENTIALS },
      provider: {},
    });
    set.proxy.onConnect = (socket) =>
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 6\r\n\r\nsecret');
    await failedOver(set, 'proxy answered 407 to CONNECT');
  });

  it.each<[what: string, bytes: string, reason: string]>([
    ['502', 'HTTP/1.1 502 Bad Gateway\r\n\r\n', 'proxy answered 502 to CONNECT'],
    ['a redirect', 'HTTP/1.1 302 Found\r\nlocation: /login\r\n\r\n', 'proxy answered 302 to CONNECT'],
    ['nothing', '', 'proxy closed the connection without an answer to CONNECT'],
    ['half a head', 'HTTP/1.1 200 OK\r\nx: ', 'proxy closed the connection without an answer to CONNECT'],
    [
      'no HTTP',
      'SSH-2.0-x\r\n\r\n',
      'proxy, in its answer to CONNECT: malformed HTTP (HPE_INVALID_CONSTANT)',
    ],
    [
      'an endless head',
      `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`,
      'proxy, in its answer to CONNECT: malformed HTTP (HPE_HEADER_OVERFLOW)',
    ],
    [
      '103 and no more',
      'HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n',
      'proxy closed the connection without an answer to CONNECT',
    ],
    ['103, then 502', 'HTTP/1.1 103 x\r\n\r\nHTTP/1.1 502 Bad\r\n\r\n', 'proxy answered 502 to CONNECT'],
    [
      '103, then no HTTP',
      'HTTP/1.1 103 x\r\n\r\nSSH-2.0-x\r\n\r\n',
      'proxy, in its answer to CONNECT: malformed HTTP',
    ],
    [
      'interim heads without end',
      'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(10_000),
      'proxy, in its answer to CONNECT: heads beyond the limit',
    ],
    ['a tunnel to nothing', 'HTTP/1.1 200 OK\r\n\r\n', 'connection reset'],
  ])('%s', async (_what, bytes, reason) => {
    const set = await behind();
    set.proxy.onConnect = (socket) => socket.end(bytes);
    await failedOver(set, reason);
    await waitFor(() => set.proxy.sockets.size === 0, 'no socket is left');
  });

  it('a proxy that refuses connections', async () => {
    const free = createServer();
    await new Promise<void>((resolve) => free.listen(0, '127.0.0.1', resolve));
    const { port } = free.address() as AddressInfo;
    await new Promise((resolve) => free.close(resolve));
    const set = await behind({ provider: { proxy: `http://127.0.0.1:${port}` } });
    await failedOver(set, 'proxy: connection refused');
  });

  it('a proxy whose certificate nobody trusts', async () => {
    const { cert, key } = theCompany().server;
    const set = await behind({ proxy: { tls: { cert, key } }, plain: true });
    await failedOver(set, 'proxy: TLS: certificate cannot be verified');
  });

  it('a silent proxy counts in the time to the first byte', async () => {
    const set = await behind({ provider: { first_byte_timeout: 'PT0.1S' } });
    set.proxy.onConnect = () => {};
    expect((await set.set.stream().end()).header('x-llm-proxy-upstream')).toBe('b');
    expect(set.set.gateway.messages.join('\n')).toContain('TIMEOUT: no first byte within 100ms');
    await waitFor(() => set.proxy.sockets.size === 0, 'no socket is left');
  });
});

describe('an http provider behind a forward proxy', () => {
  it('is asked for in absolute form, on kept connections', async () => {
    const { far, proxy, set } = await behind({ plain: true, proxy: { credentials: CREDENTIALS } });
    for (let i = 0; i < 2; i++)
      expect(
        (await set.chat({}, { path: '/v1/chat/completions?a=b' }).end()).header('x-llm-proxy-upstream'),
      ).toBe('far');
    const target = `http://127.0.0.1:${far.port}/v1/chat/completions?a=b`;
    expect(proxy.forwarded).toEqual([target, target]);
    expect(proxy.connects).toEqual([]);
    expect(proxy.sockets.size).toBe(1);
    expect(headerOf(proxy.heads[0], 'host')).toBe(`127.0.0.1:${far.port}`);
    expect(far.last.target).toBe('/v1/chat/completions?a=b');
    expect(far.last.header('proxy-authorization')).toBeUndefined();
  });

  it.each(['completion', 'get'])('probes (%s) go the same way', async (mode) => {
    const { far, proxy, set } = await behind({
      plain: true,
      provider: { backoff: 'PT1M', probe_interval: 'PT0.02S', probe: mode === 'get' ? { mode } : {} },
    });
    far.next((_r, answer) => answer.error(503));
    if (mode === 'get') far.always((_r, answer) => answer.send(200, 'alive'));
    await set.chat().end();
    await set.gateway.logged('probe upstream=far ok');
    const path = mode === 'get' ? '/health' : '/v1/chat/completions';
    expect(proxy.forwarded.at(-1)).toBe(`http://127.0.0.1:${far.port}${path}`);
    expect(far.last.target).toBe(path);
  });

  it('a 407 is the proxy’s own and never passed on', async () => {
    const set = await behind({ plain: true });
    set.proxy.onForward = (_request, response) => response.writeHead(407).end('secret');
    await failedOver(set, 'proxy answered 407');
  });

  it('what it was shown is masked where the proxy repeats it', async () => {
    const { proxy, set } = await behind({ plain: true, proxy: { credentials: CREDENTIALS } });
    proxy.onForward = ({ headers }, response) => {
      const echo = headers['proxy-authorization'] ?? '';
      response
        .writeHead(403, { 'content-type': 'application/json', 'x-echo': echo })
        .end(JSON.stringify({ error: { message: `${echo} ${CREDENTIALS.password}` } }));
    };
    const answer = await set.chat().end();
    expect(answer.status).toBe(403);
    const pair = Buffer.from(`${CREDENTIALS.user}:${CREDENTIALS.password}`).toString('base64');
    expect(answer.rawHead + answer.text).toContain('Basic');
    expect(answer.rawHead + answer.text).not.toContain(pair);
  });

  it('a client that leaves closes the socket to the proxy, and then the slot is free', async () => {
    const { far, proxy, set } = await behind({ plain: true });
    far.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('first'));
    });
    const answer = await set.stream().saw('first');
    answer.leave();
    await waitFor(() => proxy.sockets.size === 0, 'the socket to the proxy closed');
    await waitFor(async () => (await set.gateway.inflight('far')) === 0, 'the slot is free');
  });
});

describe('the environment', () => {
  const NAME = 'provider.test';

  async function named(
    variables: (proxy: ForwardProxy) => Record<string, string>,
    provider: object = {},
  ): Promise<Behind> {
    const far = await secureUpstream();
    const plain = await ScriptedUpstream.start();
    const proxy = await ForwardProxy.start({
      hosts: { [`${NAME}:443`]: far.port, [`${NAME}:80`]: plain.port },
    });
    const set = await stage({
      upstreams: 2,
      directory: companyDirectory(),
      environment: variables(proxy),
      file: ([, b]) => ({
        providers: [
          { id: 'p-far', url: `https://${NAME}/v1`, tls: TLS, ...provider },
          { id: 'pb', url: b?.url },
        ],
        upstreams: [
          { id: 'far', provider: 'p-far', model: 'real-far' },
          { id: 'b', provider: 'pb', model: 'real-b' },
        ],
        models: [{ name: 'm', upstreams: ['far', 'b'] }],
      }),
    });
    return { set, proxy, far };
  }
  const chosen = async ({ set }: Behind): Promise<string | undefined> =>
    (await set.chat().end()).header('x-llm-proxy-upstream');

  it.each(['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'])(
    '%s leads to the provider',
    async (name) => {
      const set = await named(({ url }) => ({ [name]: url }));
      expect(await chosen(set)).toBe('far');
      expect(set.proxy.connects).toEqual([`${NAME}:443`]);
    },
  );

  it('HTTP_PROXY is for http urls', async () => {
    const set = await named(({ url }) => ({ HTTP_PROXY: url }), { url: `http://${NAME}/v1`, tls: null });
    expect(await chosen(set)).toBe('far');
    expect(set.proxy.forwarded).toEqual([`http://${NAME}/v1/chat/completions`]);
  });

  it('NO_PROXY makes an exception, and this machine always is one', async () => {
    const set = await named(({ url }) => ({ HTTPS_PROXY: url, HTTP_PROXY: url, NO_PROXY: 'x.test, .test' }));
    // A name that only the proxy knows: not to be reached directly.
    expect(await chosen(set)).toBe('b');
    expect([set.proxy.connects, set.proxy.forwarded]).toEqual([[], []]);
  });

  it('the provider’s own proxy wins, `none` is a direct connection', async () => {
    const set = await named(() => ({ HTTPS_PROXY: 'http://127.0.0.1:1' }), { proxy: '${OWN:-none}' });
    expect(await chosen(set)).toBe('b');
    expect(set.set.gateway.messages.join('\n')).toContain('upstream=far host name');
  });
});
