import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  hasForeignTransferCoding,
  contentCoding,
  headerSafeId,
  headerValue,
  relayedHeaders,
  type UpstreamHeaders,
} from './response-headers.js';

function relayed(
  headers: UpstreamHeaders,
  options: { bodyChanged?: boolean; without?: string[] } = {},
): string[] {
  return relayedHeaders(headers, {
    bodyChanged: options.bodyChanged ?? false,
    without: options.without ? new Set(options.without) : null,
    mask: (value) => value.replace('sk-secret', 'sk-…'),
  });
}

describe('relayedHeaders', () => {
  it.each([
    'connection',
    'keep-alive',
    'transfer-encoding',
    'te',
    'trailer',
    'upgrade',
    'proxy-authenticate',
    'proxy-connection',
    'set-cookie',
    'server',
    'access-control-allow-origin',
    'access-control-expose-headers',
    'x-llm-proxy-upstream',
  ])('keeps %s back', (name) => {
    expect(relayed({ [name]: 'x' })).toEqual([]);
  });

  it('passes the others, each as often as it came', () => {
    expect(
      relayed({ 'content-type': 'a/b', 'x-ratelimit-remaining': '3', link: ['a', 'b'], gone: undefined }),
    ).toEqual(['content-type', 'a/b', 'x-ratelimit-remaining', '3', 'link', 'a', 'link', 'b']);
  });

  it('renames the request id of the provider', () => {
    expect(relayed({ 'x-request-id': 'theirs' })).toEqual(['x-upstream-request-id', 'theirs']);
  });

  it('drops what the connection header names', () => {
    expect(relayed({ connection: 'close, X-Hop', 'x-hop': '1', 'x-end': '2' })).toEqual(['x-end', '2']);
  });

  it('drops what speaks of the bytes only where they were changed', () => {
    const headers = { 'content-length': '5', 'content-encoding': 'gzip', etag: '"x"', 'content-type': 'a/b' };
    expect(relayed(headers)).toHaveLength(8);
    expect(relayed(headers, { bodyChanged: true })).toEqual(['content-type', 'a/b']);
    expect(relayed(headers, { without: ['content-length'] })).not.toContain('content-length');
  });

  it('masks keys in every value', () => {
    expect(relayed({ 'x-echo': ['Bearer sk-secret', 'x'], 'x-one': 'sk-secret' })).toEqual([
      'x-echo',
      'Bearer sk-…',
      'x-echo',
      'x',
      'x-one',
      'sk-…',
    ]);
  });
});

describe('contentCoding', () => {
  it('knows plain from coded', () => {
    const of = (value: string | undefined) => contentCoding({ 'content-encoding': value });
    expect([of(undefined), of(''), of(' Identity '), of('GZIP'), of('gzip, br')]).toEqual([
      null,
      null,
      null,
      'gzip',
      'gzip, br',
    ]);
  });
});

describe('headerSafeId', () => {
  it.each([
    ['my-gpt/4.1:free', 'my-gpt/4.1:free'],
    ['a b', 'a%20b'],
    ['100%', '100%25'],
    ['модель', encodeURIComponent('модель')],
    ['a\r\nb', 'a%0D%0Ab'],
    ['\ud800', '%EF%BF%BD'],
  ])('writes %j as %s', (id, safe) => {
    expect(headerSafeId(id)).toBe(safe);
  });

  it('is visible ASCII for any id, and can be read back', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (id) => {
        const safe = headerSafeId(id);
        expect(/^[\x21-\x7e]*$/.test(safe)).toBe(true);
        expect(decodeURIComponent(safe)).toBe(id.toWellFormed());
      }),
    );
  });
});

describe('headerValue', () => {
  it('gives the first of several', () => {
    expect([headerValue({ a: ['1', '2'] }, 'a'), headerValue({ a: '1' }, 'a'), headerValue({}, 'a')]).toEqual(
      ['1', '1', undefined],
    );
  });
});

describe('hasForeignTransferCoding', () => {
  it.each([
    undefined,
    'chunked',
    'Chunked',
    'identity',
    ' chunked ',
    'identity, chunked',
    ['chunked', 'chunked'],
  ])('none in %j', (value) => expect(hasForeignTransferCoding({ 'transfer-encoding': value })).toBe(false));
  it.each(['gzip, chunked', 'gzip', 'x-gzip,chunked', ['gzip', 'chunked'], 'deflate', 'gzip;q=1, chunked'])(
    'one in %j',
    (value) => expect(hasForeignTransferCoding({ 'transfer-encoding': value })).toBe(true),
  );
});
