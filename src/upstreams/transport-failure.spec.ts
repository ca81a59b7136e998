import { describe, expect, it } from 'vitest';
import { describeTransportError, isStaleSocketError, ProxyError, tellingError } from './transport-failure.js';

const coded = (code: string, message = 'x'): Error => Object.assign(new Error(message), { code });

describe('describeTransportError', () => {
  it.each([
    ['ECONNREFUSED', 'connection refused'],
    ['ECONNRESET', 'connection reset'],
    ['ENOTFOUND', 'host name not found'],
    ['UND_ERR_HEADERS_OVERFLOW', 'response head too large'],
    ['HPE_INVALID_CHUNK_SIZE', 'malformed HTTP (HPE_INVALID_CHUNK_SIZE)'],
    [
      'ERR_SSL_WRONG_VERSION_NUMBER',
      'TLS: what answers at this port does not speak TLS; should the url begin with http://?',
    ],
    ['CERT_HAS_EXPIRED', 'TLS: certificate expired'],
    ['EWHATEVER', 'connection failed (EWHATEVER)'],
    [
      'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
      'TLS: the provider asks for a client certificate: tls.cert and tls.key',
    ],
    [
      'ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE',
      'TLS: the provider refuses the client certificate, or the lack of one (bad certificate): tls.cert and tls.key',
    ],
    [
      'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA',
      'TLS: the provider refuses the client certificate, or the lack of one (unknown authority): tls.cert and tls.key',
    ],
    [
      'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE',
      'TLS: the provider refuses the handshake; it may ask for a client certificate (tls.cert and tls.key)',
    ],
    [
      'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
      'TLS: the provider speaks no version of TLS that is spoken here',
    ],
    ['ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR', 'TLS: ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR'],
    ['ERR_SSL_SSL/TLS_ALERT_CONSTRUCTOR', 'TLS: ERR_SSL_SSL/TLS_ALERT_CONSTRUCTOR'],
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

describe('tellingError', () => {
  const alert = coded('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED');

  it('is what the other side said before it closed', () => {
    expect(tellingError(coded('UND_ERR_SOCKET'), alert)).toBe(alert);
  });

  it.each([
    ['nothing was said', coded('UND_ERR_SOCKET'), null],
    ['the socket only broke', coded('UND_ERR_SOCKET'), coded('ECONNRESET')],
    ['the proxy failed', new ProxyError('proxy answered 403 to CONNECT'), alert],
  ])('is the error itself where %s', (_, error, ofSocket) => {
    expect(tellingError(error, ofSocket)).toBe(error);
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
