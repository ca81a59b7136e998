import 'reflect-metadata';
import { mkdirSync, symlinkSync } from 'node:fs';
import { generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeCertificate } from '../../../test/support/certificates.js';
import { companyDirectory, directoryWith, theCompany } from '../../../test/support/company.js';
import type { ProviderConfig } from '../gateway-config.js';
import { formatProblem } from './config-problem.js';
import { loadConfig, type LoadResult } from './load-config.js';

const { authority, client } = theCompany();

function loaded(
  provider: string,
  directory = '.',
  environment: Record<string, string> = {},
  url = 'https://api.example.com',
): LoadResult {
  const text = `providers: [{ id: p, ${provider.startsWith('url:') ? '' : `url: "${url}", `}${provider} }]
upstreams: [{ id: u, provider: p, model: r }]
models: [{ name: m, upstreams: [u] }]`;
  return loadConfig({ text, directory }, environment);
}

const problemsOf = (result: LoadResult): string[] => (result.ok ? [] : result.problems.map(formatProblem));

function providerOf(result: LoadResult): ProviderConfig {
  expect(problemsOf(result)).toEqual([]);
  return (result as Extract<LoadResult, { ok: true }>).config.providers[0] as ProviderConfig;
}

describe('proxy', () => {
  const environment = { HTTPS_PROXY: 'http://from-environment:1', P: 'http://u:secret@own:3128' };

  it('of the provider wins over the environment; `none` is a direct connection; null is absent', () => {
    expect(providerOf(loaded('proxy: "${P}"', '.', environment)).proxy).toEqual({
      origin: 'http://own:3128',
      authorization: `Basic ${Buffer.from('u:secret').toString('base64')}`,
      shown: 'http://…@own:3128',
      source: 'proxy',
    });
    expect(providerOf(loaded('proxy: none', '.', environment)).proxy).toBeNull();
    for (const absent of ['proxy: null', 'key: k'])
      expect(providerOf(loaded(absent, '.', environment)).proxy?.source).toBe('HTTPS_PROXY');
  });

  it('of the provider holds for this machine too, and NO_PROXY says nothing about it', () => {
    const { proxy } = providerOf(
      loaded('proxy: "http://own:3128"', '.', { NO_PROXY: '*' }, 'http://localhost:8080'),
    );
    expect(proxy?.origin).toBe('http://own:3128');
  });

  it.each([
    ['""', 'is empty; write "none" for a direct connection, or remove the key'],
    ['false', 'write "none" for a direct connection'],
    ['direct', 'write "none" for a direct connection'],
    ['off', 'write "none" for a direct connection'],
    ['7', 'must be a text, not a number'],
    ['[x]', 'must be a text, not a list'],
    ['"proxy.example:3128"', 'is not an absolute url; write it like "http://proxy.example:3128"'],
    ['"socks5://u:secret@h:1"', 'SOCKS proxies are not supported (socks5)'],
    ['"http://u:secret@h:1/x"', 'must be scheme, host and port only'],
    ['"${NOT_SET}"', 'the environment variable NOT_SET is not set'],
  ])('%s → %s', (value, message) => {
    const problems = problemsOf(loaded(`proxy: ${value}`));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(`providers[0].proxy (line 1): ${message}`);
    expect(problems[0]).not.toContain('secret');
  });

  it('a wrong variable of the environment is a problem of the whole, told beside those of the file', () => {
    const problems = problemsOf(loaded('kex: 1', '.', { HTTPS_PROXY: 'socks5://u:secret@h:1' }));
    expect(problems).toHaveLength(2);
    expect(problems[0]).toMatch(/^the environment variable HTTPS_PROXY: SOCKS/);
  });

  it('an entry of NO_PROXY that matches nothing is a warning', () => {
    expect(loaded('key: k', '.', { NO_PROXY: '10.*' }).warnings.map(formatProblem)).toHaveLength(1);
  });
});

describe('tls', () => {
  it('holds what the files hold, from the directory of the file', () => {
    const directory = companyDirectory();
    expect(
      providerOf(loaded('tls: { ca: ca.pem, cert: ./client.pem, key: client.key }', directory)).tls,
    ).toEqual({
      ca: authority.cert.trim(),
      client: { cert: client.cert.trim(), key: client.key },
      servername: null,
    });
    expect(providerOf(loaded(`tls: { ca: '${join(directory, 'ca.pem')}' }`)).tls?.ca).toBe(
      authority.cert.trim(),
    );
    expect(providerOf(loaded('tls: { servername: x.test }')).tls).toEqual({
      ca: null,
      client: null,
      servername: 'x.test',
    });
    for (const nothing of ['tls: {}', 'tls: null', 'tls: { ca: null }'])
      expect(providerOf(loaded(nothing)).tls).toBeNull();
  });

  it('takes bundles and chains, with text between', () => {
    const directory = directoryWith({
      'bundle.pem': `# ours\n${authority.cert}# and theirs\n${client.cert}`,
      'both.pem': client.key + client.cert + authority.cert,
    });
    const { tls } = providerOf(loaded('tls: { ca: bundle.pem, cert: both.pem, key: both.pem }', directory));
    expect(tls?.ca?.match(/BEGIN/g)).toHaveLength(2);
    expect(tls?.client?.cert.match(/BEGIN/g)).toHaveLength(2);
    expect(tls?.client?.cert).not.toContain('PRIVATE');
  });

  const other = makeCertificate({ name: 'other' });
  const encrypted = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    type: 'pkcs8',
    format: 'pem',
    cipher: 'aes-256-cbc',
    passphrase: 'secret',
  });
  const files = {
    'ca.pem': authority.cert,
    'client.pem': client.cert,
    'client.key': client.key,
    'other.key': other.key,
    'encrypted.key': encrypted.toString(),
    'old.key':
      '-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES\n\nabc\n-----END RSA PRIVATE KEY-----\n',
    'text.pem': 'secret words',
    'broken.pem': `${authority.cert}-----BEGIN CERTIFICATE-----\nc2VjcmV0\n-----END CERTIFICATE-----\n`,
    'empty.pem': '',
    'large.pem': 'x'.repeat(1024 * 1024 + 1),
  };
  it.each([
    ['ca: nowhere.pem', 'tls.ca (line 1): the file does not exist: '],
    ['ca: ca.pem/x', 'tls.ca (line 1): the file does not exist: '],
    ['ca: folder', 'tls.ca (line 1): is a directory, not a file: '],
    ['ca: text.pem', 'tls.ca (line 1): holds no certificate in PEM form'],
    ['ca: empty.pem', 'tls.ca (line 1): holds no certificate in PEM form'],
    ['ca: client.key', 'tls.ca (line 1): holds no certificate in PEM form'],
    ['ca: broken.pem', 'tls.ca (line 1): its certificate number 2 cannot be read: '],
    ['ca: large.pem', 'tls.ca (line 1): is larger than 1 MiB: '],
    ['ca: ""', 'tls.ca (line 1): must not be empty'],
    ['ca: [ca.pem]', 'tls.ca (line 1): must be a text, not a list'],
    ['cert: client.pem', 'tls.cert (line 1): a client certificate needs its private key'],
    ['key: client.key', 'tls.key (line 1): a private key needs its certificate'],
    [
      'cert: client.pem, key: other.key',
      'tls.key (line 1): the private key does not belong to the first certificate',
    ],
    [
      'cert: client.pem, key: encrypted.key',
      'tls.key (line 1): the key is encrypted; store it without a passphrase',
    ],
    [
      'cert: client.pem, key: old.key',
      'tls.key (line 1): the key is encrypted; store it without a passphrase',
    ],
    ['cert: client.pem, key: client.pem', 'tls.key (line 1): holds no private key in PEM form'],
    [
      'servername: 10.0.0.1',
      'tls.servername (line 1): must be a host name such as llm.internal.example, no address',
    ],
    ['servername: "a b"', 'tls.servername (line 1): must be a host name'],
    ['insecure: true', 'tls.insecure (line 1): unknown key "insecure" in providers[].tls'],
    ['url: x', 'tls.url (line 1): unknown key "url" in providers[].tls; it belongs to providers[]'],
  ])('{ %s } → %s', (tls, message) => {
    const directory = directoryWith(files);
    mkdirSync(join(directory, 'folder'));
    const problems = problemsOf(loaded(`tls: { ${tls} }`, directory));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(`providers[0].${message}`);
    expect(problems[0]).not.toContain('secret');
  });

  it('a file that cannot be read for another reason', () => {
    const directory = directoryWith({});
    symlinkSync('loop.pem', join(directory, 'loop.pem'));
    expect(problemsOf(loaded('tls: { ca: loop.pem }', directory))[0]).toContain(
      'tls.ca (line 1): the file cannot be read (ELOOP): ',
    );
  });

  it('survives lists where texts belong', () => {
    expect(problemsOf(loaded('url: [x], proxy: [x], tls: [x]'))).toHaveLength(3);
    expect(problemsOf(loaded('tls: { cert: [x], key: [x], servername: [x] }'))).toHaveLength(3);
  });

  it('tells everything at once', () => {
    const problems = problemsOf(
      loaded('tls: { ca: nowhere.pem, key: text.pem, servername: "::1" }', directoryWith(files)),
    );
    expect(problems).toHaveLength(4);
  });

  it('with an http url would encrypt nothing', () => {
    expect(problemsOf(loaded('tls: { ca: ca.pem }', directoryWith(files), {}, 'http://h'))).toEqual([
      'providers[0].tls (line 1): the url is http://, so nothing would be encrypted; use https, or remove tls',
    ]);
  });

  it('a key of tls that stands in the provider itself is sent home', () => {
    expect(problemsOf(loaded('servername: x.test'))[0]).toContain('it belongs to providers[].tls');
  });

  it('warns of a certificate that has expired', () => {
    const past = new Date('2020-03-04T05:06:07Z');
    const old = makeCertificate({ name: 'old', notBefore: new Date('2019-01-01'), notAfter: past });
    const result = loaded('tls: { ca: old.pem }', directoryWith({ 'old.pem': old.cert }));
    expect(problemsOf(result)).toEqual([]);
    expect(result.warnings.map(formatProblem)).toEqual([
      'providers[0].tls.ca (line 1): certificate number 1 of the file expired on 2020-03-04',
    ]);
  });
});
