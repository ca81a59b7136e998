import { describe, expect, it } from 'vitest';
import { ProxyEnvironment } from './proxy-environment.js';

const HTTPS = new URL('https://api.example.com/v1');
const HTTP = new URL('http://api.example.com/v1');
const via = (variables: Record<string, string>, url = HTTPS): string | null => {
  const proxy = new ProxyEnvironment(variables).proxyFor(url);
  return proxy === null ? null : `${proxy.origin} ${proxy.source}`;
};

describe('ProxyEnvironment', () => {
  it('without variables: a direct connection', () => {
    expect(via({})).toBeNull();
    expect(via({ HTTPS_PROXY: '', https_proxy: ' ', ALL_PROXY: '' })).toBeNull();
  });

  it('lower case wins, then the scheme’s own, then the one for all; empty is unset', () => {
    const all = {
      https_proxy: 'http://a:1',
      HTTPS_PROXY: 'http://b:1',
      all_proxy: 'http://c:1',
      ALL_PROXY: 'http://d:1',
    };
    expect(via(all)).toBe('http://a:1 https_proxy');
    expect(via({ ...all, https_proxy: '' })).toBe('http://b:1 HTTPS_PROXY');
    expect(via({ ...all, https_proxy: '', HTTPS_PROXY: '' })).toBe('http://c:1 all_proxy');
    expect(via({ ALL_PROXY: 'http://d:1' }, HTTP)).toBe('http://d:1 ALL_PROXY');
    expect(via({ HTTPS_PROXY: 'http://b:1' }, HTTP)).toBeNull();
    expect(via({ HTTP_PROXY: 'http://b:1' }, HTTP)).toBe('http://b:1 HTTP_PROXY');
    expect(via({ HTTP_PROXY: 'http://b:1' }, HTTPS)).toBeNull();
  });

  it('a host and a port are enough', () => {
    expect(via({ HTTPS_PROXY: 'proxy.example:3128' })).toBe('http://proxy.example:3128 HTTPS_PROXY');
    expect(via({ HTTPS_PROXY: 'user:p%40ss@proxy.example:3128' })).toBe(
      'http://proxy.example:3128 HTTPS_PROXY',
    );
  });

  it('decodes user info, and hides it', () => {
    const proxy = new ProxyEnvironment({
      HTTPS_PROXY: 'https://a%2Fb:p%40%3A%C3%A9@proxy.example/',
    }).proxyFor(HTTPS);
    expect(Buffer.from((proxy?.authorization ?? '').slice('Basic '.length), 'base64').toString()).toBe(
      'a/b:p@:é',
    );
    expect(proxy).toMatchObject({ origin: 'https://proxy.example', shown: 'https://…@proxy.example' });
    expect(new ProxyEnvironment({ HTTPS_PROXY: 'http://p:3128' }).proxyFor(HTTPS)).toMatchObject({
      authorization: null,
      shown: 'http://p:3128',
    });
  });

  it('lower case no_proxy wins', () => {
    expect(via({ HTTPS_PROXY: 'http://b:1', NO_PROXY: 'example.com' })).toBeNull();
    expect(via({ HTTPS_PROXY: 'http://b:1', NO_PROXY: 'example.com', no_proxy: 'x' })).not.toBeNull();
  });

  it.each([
    ['socks5://user:secret@h:1', 'SOCKS proxies are not supported (socks5)'],
    ['ftp://user:secret@h', 'the scheme must be http or https, not ftp'],
    ['http://user:secret@', 'has no valid host and port'],
    ['http://user:sec/ret@h:1', 'has no valid host and port'],
    ['http://user:secret@h:1/path', 'must be scheme, host and port only'],
    ['http://user:secret@h:1?x', 'must be scheme, host and port only'],
    ['http://user:secret@h:99999', 'has no valid host and port'],
    ['http://user:sec%zzret@h:1', 'begins no percent-encoded character'],
    ['http://us%3Aer:secret@h:1', 'the user name holds a ":"'],
    ['http://user:sec ret@h', 'holds a space'],
  ])('names the variable and what is wrong, without the value: %s', (value, message) => {
    const { problems } = new ProxyEnvironment({ HTTPS_PROXY: value });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(`the environment variable HTTPS_PROXY: `);
    expect(problems[0]).toContain(message);
    expect(problems[0]).not.toMatch(/sec|ret@|user:/);
  });

  it('tells of one wrong variable once, and of none that others hide', () => {
    expect(new ProxyEnvironment({ ALL_PROXY: 'socks5://h:1' }).problems).toHaveLength(1);
    const hidden = { ALL_PROXY: 'socks5://h:1', HTTP_PROXY: 'http://h:1', HTTPS_PROXY: 'http://h:1' };
    expect(new ProxyEnvironment(hidden).problems).toEqual([]);
  });

  it('warns of entries of NO_PROXY that match nothing', () => {
    expect(new ProxyEnvironment({ NO_PROXY: '10.*,x.test' }).warnings).toEqual([
      'the environment variable NO_PROXY: the entry "10.*" matches nothing; write a host name, ".suffix", an address, a range such as 10.0.0.0/8, or "*"',
    ]);
  });
});
