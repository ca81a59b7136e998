import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NoProxyList } from './no-proxy.js';

const excludes = (list: string, url: string): boolean => NoProxyList.parse(list).excludes(new URL(url));

describe('NoProxyList', () => {
  it.each([
    ['example.com', 'https://example.com/v1'],
    ['example.com', 'https://api.example.com'],
    ['EXAMPLE.com', 'https://Api.Example.COM'],
    ['.example.com', 'https://api.example.com'],
    ['.example.com', 'https://example.com'],
    ['*.example.com', 'https://a.b.example.com'],
    ['example.com.', 'https://example.com'],
    ['example.com', 'https://example.com.'],
    ['*', 'https://example.com'],
    ['other.test *', 'https://example.com'],
    ['a.test, b.test\tc.test ,,', 'https://b.test'],
    ['example.com:443', 'https://example.com'],
    ['example.com:80', 'http://example.com'],
    ['example.com:8443', 'https://example.com:8443'],
    ['gpu_box-1', 'http://gpu_box-1:8080'],
    ['10.0.0.5', 'http://10.0.0.5:8080'],
    ['10.0.0.0/8', 'http://10.200.3.4'],
    ['10.0.0.0/8:8080', 'http://example.com:1', false],
    ['0.0.0.0/0', 'http://8.8.8.8'],
    ['::1', 'http://[::1]:8080'],
    ['[fd00::5]:8080', 'http://[fd00:0:0::5]:8080'],
    ['fd00::/8', 'http://[fd12::1]'],
    ['FD00::5', 'http://[fd00::5]'],
    ['Bücher.example', 'https://www.bücher.example'],
  ] as [string, string, boolean?][])('%s, %s', (list, url, expected = true) => {
    expect(excludes(list, url)).toBe(expected);
  });

  it.each([
    ['', 'https://example.com'],
    ['example.com', 'https://notexample.com'],
    ['example.com', 'https://example.com.evil.test'],
    ['*.example.com', 'https://example.com'],
    ['example.com:80', 'https://example.com'],
    ['*:80', 'https://example.com'],
    ['10.0.0.0/8', 'http://11.0.0.1'],
    ['10.0.0.0/8', 'http://10.example.com'],
    ['10.0.0.5', 'http://10.0.0.50'],
    ['[fd00::5]:8080', 'http://[fd00::5]:8081'],
    ['fd00::/8', 'http://10.0.0.1'],
  ])('%s, not %s', (list, url) => {
    expect(excludes(list, url)).toBe(false);
  });

  it.each([
    'http://localhost:8080',
    'http://127.0.0.1',
    'http://127.9.8.7:1',
    'http://[::1]',
    'https://x.localhost',
  ])('this machine always: %s', (url) => {
    expect(excludes('', url)).toBe(true);
  });

  it.each([
    '10.*',
    '192.168.*.*',
    '10.0.0.0/33',
    '10.0.0.0/',
    'a b/8',
    'http://example.com',
    '*example.com',
    'x:99999',
    '10.1',
  ])('tells of entries that match nothing: %s', (entry) => {
    expect(NoProxyList.parse(entry).unusable).toEqual([entry.split(' ').at(-1)]);
  });

  it('takes any text, in linear time, and decides the same for the same entries in any order', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string(), fc.domain(), fc.ipV4(), fc.ipV6())),
        fc.domain(),
        (entries, host) => {
          const url = new URL(`https://${host}`);
          const one = NoProxyList.parse(entries.join(',')).excludes(url);
          expect(NoProxyList.parse(entries.toReversed().join(' ')).excludes(url)).toBe(one);
        },
      ),
    );
    expect(NoProxyList.parse('a.'.repeat(200_000)).excludes(new URL('https://x.test'))).toBe(false);
  });

  it('every domain is excluded by itself and by its parents, and by nothing else', () => {
    fc.assert(
      fc.property(fc.domain(), fc.domain(), (host, other) => {
        expect(excludes(host, `https://${host}`)).toBe(true);
        expect(excludes(host, `https://sub.${host}`)).toBe(true);
        const isBelow = host === other || host.endsWith(`.${other}`);
        expect(excludes(other, `https://${host}`)).toBe(isBelow);
      }),
    );
  });
});
