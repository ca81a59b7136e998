import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { DONE } from '../support/answers.js';
import { type Certificate, makeCertificate } from '../support/certificates.js';
import { companyDirectory, secureUpstream, theCompany } from '../support/company.js';
import { ForwardProxy } from '../support/forward-proxy.js';
import { ServiceProcess } from '../support/process.js';
import { ScriptedUpstream } from '../support/scripted-upstream.js';
import { secretKey } from '../support/secret-watch.js';
import { stage, type Stage } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';

const CLIENT = { ca: 'ca.pem', cert: 'client.pem', key: 'client.key' };

/** Upstream `far` at this provider, with this `tls` section, and the scripted `b` after it. */
async function secured(far: ScriptedUpstream, tls: object | null, provider: object = {}): Promise<Stage> {
  return stage({
    upstreams: 2,
    directory: companyDirectory(),
    file: ([, b]) => ({
      providers: [
        { id: 'p-far', url: far.url, key: secretKey('far'), tls, ...provider },
        { id: 'pb', url: b?.url },
      ],
      upstreams: [
        { id: 'far', provider: 'p-far', model: 'real-far', max_concurrency: 1 },
        { id: 'b', provider: 'pb', model: 'real-b' },
      ],
      models: [{ name: 'm', upstreams: ['far', 'b'] }],
    }),
  });
}

async function failedOver(set: Stage, reason: string): Promise<void> {
  expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
  expect(set.gateway.messages.filter((line) => line.includes('→ failover'))).toEqual([
    `[llm-proxy] chat model=m upstream=far ${reason} → failover`,
  ]);
  expect(
    (await set.gateway.metrics()).sum('llm_proxy_requests_total', { upstream: 'far', result: 'net_err' }),
  ).toBe(1);
  expect(await set.gateway.inflight('far')).toBe(0);
}

describe('a private certificate authority', () => {
  it('is trusted where `tls.ca` names it', async () => {
    const far = await secureUpstream();
    const set = await secured(far, { ca: 'ca.pem' });
    expect((await set.stream().end()).text.endsWith(DONE)).toBe(true);
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('far');
    expect(far.connections).toBe(1);
  });

  it('is not trusted elsewhere', async () => {
    await failedOver(await secured(await secureUpstream(), null), 'TLS: certificate cannot be verified');
  });
});

describe('a certificate that is wrong', () => {
  let elsewhere: Certificate;
  let expired: Certificate;
  let early: Certificate;
  let selfSigned: Certificate;
  beforeAll(() => {
    const { authority } = theCompany();
    const hosts = ['127.0.0.1'];
    elsewhere = makeCertificate({ name: 'x', hosts: ['elsewhere.test'], issuer: authority });
    expired = makeCertificate({
      name: 'x',
      hosts,
      issuer: authority,
      notAfter: new Date(Date.now() - 60_000),
    });
    early = makeCertificate({
      name: 'x',
      hosts,
      issuer: authority,
      notBefore: new Date(Date.now() + 3_600_000),
    });
    selfSigned = makeCertificate({ name: 'x', hosts });
  });

  it.each<[what: string, certificate: () => Certificate, reason: string]>([
    ['for another host', () => elsewhere, 'TLS: certificate is for another host'],
    ['expired', () => expired, 'TLS: certificate expired'],
    ['not valid yet', () => early, 'TLS: certificate not valid yet'],
    ['self-signed', () => selfSigned, 'TLS: self-signed certificate'],
  ])('%s → failover, and the log says why', async (_what, certificate, reason) => {
    await failedOver(await secured(await secureUpstream(certificate()), { ca: 'ca.pem' }), reason);
  });

  it('expired, inside a tunnel', async () => {
    const proxy = await ForwardProxy.start();
    const far = await secureUpstream(expired);
    await failedOver(await secured(far, { ca: 'ca.pem' }, { proxy: proxy.url }), 'TLS: certificate expired');
    await waitFor(() => proxy.sockets.size === 0, 'no socket is left');
  });

  it('`servername` names the host that it must be for', async () => {
    const far = await secureUpstream(elsewhere);
    const right = await secured(far, { ca: 'ca.pem', servername: 'elsewhere.test' });
    expect((await right.chat().end()).header('x-llm-proxy-upstream')).toBe('far');
    const proxy = await ForwardProxy.start();
    const tunnelled = await secured(
      far,
      { ca: 'ca.pem', servername: 'elsewhere.test' },
      { proxy: proxy.url },
    );
    expect((await tunnelled.chat().end()).header('x-llm-proxy-upstream')).toBe('far');
    const wrong = await secured(await secureUpstream(), { ca: 'ca.pem', servername: 'elsewhere.test' });
    await failedOver(wrong, 'TLS: certificate is for another host');
  });
});

describe('a provider that wants a client certificate', () => {
  it('gets the one of `tls.cert` and `tls.key`', async () => {
    const far = await secureUpstream(theCompany().server, true);
    const set = await secured(far, CLIENT);
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('far');
  });

  it('through a tunnel too', async () => {
    const far = await secureUpstream(theCompany().server, true);
    const proxy = await ForwardProxy.start();
    const set = await secured(far, CLIENT, { proxy: proxy.url });
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('far');
    expect(proxy.connects).toHaveLength(1);
  });

  it.each([
    ['TLSv1.3', 'TLS: the provider asks for a client certificate: tls.cert and tls.key'],
    [
      'TLSv1.2',
      'TLS: the provider refuses the handshake; it may ask for a client certificate (tls.cert and tls.key)',
    ],
  ] as const)('says what is missing where there is none: %s', async (version, reason) => {
    const far = await secureUpstream(theCompany().server, true, { maxVersion: version });
    const set = await secured(far, { ca: 'ca.pem' });
    // What is sent may meet a socket that is closed, and its reset then hides what was said: that is another try's luck.
    await waitFor(async () => {
      expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
      return set.gateway.messages.includes(`[llm-proxy] chat model=m upstream=far ${reason} → failover`);
    }, 'it was told');
    expect(await set.gateway.inflight('far')).toBe(0);
  });
});

describe('an http provider through a proxy that speaks TLS', () => {
  it('is asked for in absolute form; the proxy’s certificate is checked for the proxy’s own address', async () => {
    const { authority, server } = theCompany();
    const far = await ScriptedUpstream.start();
    const proxy = await ForwardProxy.start({ tls: server, hosts: { 'provider.example:80': far.port } });
    // Trusted by the process as a whole, as Node does it.
    const service = await ServiceProcess.listening({
      environment: { NODE_EXTRA_CA_CERTS: fileOf(authority.cert) },
      config: {
        server: { host: '127.0.0.1', port: 0 },
        providers: [{ id: 'p', url: 'http://provider.example/v1', proxy: proxy.url }],
        upstreams: [{ id: 'u', provider: 'p', model: 'real' }],
        models: [{ name: 'm', upstreams: ['u'] }],
      },
    });
    const answer = await service.send({ body: { model: 'm', messages: [] } }).end();
    expect([answer.status, answer.header('x-llm-proxy-upstream')]).toEqual([200, 'u']);
    expect(proxy.forwarded).toEqual(['http://provider.example/v1/chat/completions']);
    await far.stop();
  });
});

function fileOf(text: string): string {
  const path = join(companyDirectory(), 'extra.pem');
  writeFileSync(path, text);
  return path;
}

describe('at start and with --check', () => {
  const { authority, client } = theCompany();
  const files = { 'ca.pem': authority.cert, 'client.pem': client.cert, 'client.key': client.key };
  const config = (tls: object, proxy: string = 'none') => ({
    server: { host: '127.0.0.1', port: 0 },
    providers: [{ id: 'p', url: 'https://provider.example/v1', proxy, tls }],
    upstreams: [{ id: 'u', provider: 'p', model: 'real' }],
    models: [{ name: 'm', upstreams: ['u'] }],
  });

  it('a file that is missing is told with path and line', async () => {
    const yaml = `providers:
  - id: p
    url: https://provider.example/v1
    tls:
      ca: ./nowhere.pem
upstreams: [{ id: u, provider: p, model: real }]
models: [{ name: m, upstreams: [u] }]
`;
    for (const args of [[], ['--check', 'config.yaml']]) {
      const service = new ServiceProcess({ config: yaml, args, files });
      expect(await service.exit()).toEqual({ code: 1, signal: null });
      expect(service.stderr).toBe(
        `[llm-proxy] providers[0].tls.ca (line 5): the file does not exist: ${join(service.directory, 'nowhere.pem')}\n`,
      );
    }
  });

  it('says how providers are reached, without a password', async () => {
    const proxy = `http://user:${secretKey('proxy')}@proxy.example:3128`;
    const given = { files, config: config({ ...CLIENT, servername: 'llm.example' }, '${P}') };
    const check = new ServiceProcess({ ...given, args: ['--check'], environment: { P: proxy } });
    expect(await check.exit()).toEqual({ code: 0, signal: null });
    expect(check.stdout).toContain(
      'p         via http://…@proxy.example:3128 (proxy), tls ca + client certificate + servername llm.example',
    );
    const service = await ServiceProcess.listening({ ...given, environment: { P: proxy } });
    expect(service.lines.map(({ msg }) => msg)).toContain(
      '[llm-proxy] network: p=via http://…@proxy.example:3128 (proxy), tls ca + client certificate + servername llm.example',
    );
  });

  it('an environment variable that is no proxy is named, without its value', async () => {
    const { proxy: _own, ...provider } = config({}).providers[0] as Record<string, unknown>;
    const service = new ServiceProcess({
      config: { ...config({}), providers: [provider] },
      environment: { HTTPS_PROXY: `socks5://user:${secretKey('proxy')}@127.0.0.1:1080` },
    });
    expect(await service.exit()).toEqual({ code: 1, signal: null });
    expect(service.stderr).toBe(
      '[llm-proxy] the environment variable HTTPS_PROXY: SOCKS proxies are not supported (socks5); write it like "http://proxy.example:3128", with an HTTP proxy\n',
    );
  });
});
