import { describe, expect, it } from 'vitest';
import { connectionTokens, endToEndHeaders, passesToProvider } from './request-headers.js';

describe('passesToProvider', () => {
  it.each([
    'authorization',
    'x-api-key',
    'api-key',
    'x-goog-api-key',
    'cookie',
    'host',
    'content-length',
    'expect',
    'accept-encoding',
    'x-llm-proxy-anything',
    'forwarded',
    'x-forwarded-for',
    'x-forwarded-proto',
    'proxy-authorization',
    'proxy-connection',
    'connection',
    'keep-alive',
    'te',
    'trailer',
    'transfer-encoding',
    'upgrade',
  ])('keeps %s here', (name) => {
    expect(passesToProvider(name)).toBe(false);
  });

  it.each([
    'accept',
    'user-agent',
    'openai-organization',
    'openai-beta',
    'x-title',
    'x-request-id',
    'x-custom',
    'http-referer',
    'x-api-key-2',
  ])('passes %s', (name) => {
    expect(passesToProvider(name)).toBe(true);
  });
});

describe('endToEndHeaders', () => {
  it('keeps order and number, in lower case', () => {
    expect(endToEndHeaders(['X-B', '1', 'X-A', '2', 'x-b', '3', 'Cookie', 'c'], undefined)).toEqual([
      'x-b',
      '1',
      'x-a',
      '2',
      'x-b',
      '3',
    ]);
  });

  it('drops what the connection header names, in any spelling', () => {
    expect(endToEndHeaders(['X-Hop', '1', 'x-end', '2'], 'close, X-hop ,')).toEqual(['x-end', '2']);
  });

  it('drops the usual hop-by-hop headers whatever the connection header says', () => {
    expect(
      endToEndHeaders(
        ['Connection', 'keep-alive', 'Keep-Alive', 'timeout=5', 'TE', 'trailers'],
        'keep-alive',
      ),
    ).toEqual([]);
  });
});

describe('connectionTokens', () => {
  it('has nothing to say of the usual ones', () => {
    expect([undefined, 'close', 'keep-alive'].map(connectionTokens)).toEqual([null, null, null]);
    expect(connectionTokens('Close, X-A')?.has('x-a')).toBe(true);
  });
});
