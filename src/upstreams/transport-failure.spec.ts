import { describe, expect, it } from 'vitest';
import { describeTransportError, isStaleSocketError } from './transport-failure.js';

const coded = (code: string, message = 'x'): Error => Object.assign(new Error(message), { code });

describe('describeTransportError', () => {
  it.each([
    ['ECONNREFUSED', 'connection refused'],
    ['ECONNRESET', 'connection reset'],
    ['ENOTFOUND', 'host name not found'],
    ['UND_ERR_HEADERS_OVERFLOW', 'response head too large'],
    ['HPE_INVALID_CHUNK_SIZE', 'malformed HTTP (HPE_INVALID_CHUNK_SIZE)'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'TLS: ERR_SSL_WRONG_VERSION_NUMBER'],
    ['CERT_HAS_EXPIRED', 'TLS: certificate expired'],
    ['EWHATEVER', 'connection failed (EWHATEVER)'],
  ])('says %s in words', (code, reason) => {
    expect(describeTransportError(coded(code))).toEqual({ reason });
  });

  it('looks into the first cause of a failed dual-stack connect', () => {
    const error = new AggregateError([coded('ECONNREFUSED'), coded('ENETUNREACH')]);
    expect(describeTransportError(error).reason).toBe('connection refused');
  });

  it('never repeats a text of the library or the provider', () => {
    for (const error of [
      new Error('secret text'),
      coded('secret text', 'secret text'),
      'secret text',
      { code: 7 },
    ]) {
      expect(describeTransportError(error).reason).not.toContain('secret');
    }
  });

  it('takes names of the prototype chain for no known code', () => {
    expect(describeTransportError(coded('CONSTRUCTOR')).reason).toBe('connection failed (CONSTRUCTOR)');
  });
});

describe('isStaleSocketError', () => {
  it('knows what a socket closed meanwhile looks like, and nothing else', () => {
    for (const code of ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])
      expect(isStaleSocketError(coded(code))).toBe(true);
    for (const code of ['ECONNREFUSED', 'HPE_INVALID_CONSTANT', 'UND_ERR_HEADERS_OVERFLOW']) {
      expect(isStaleSocketError(coded(code))).toBe(false);
    }
  });
});
