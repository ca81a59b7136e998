import { errors } from './undici.js';

/** What went wrong on the wire, in words of ours. */
export interface TransportFailure {
  /** One phrase for the log; holds no header, body, key or address of a client. */
  readonly reason: string;
  /** Something of this machine ran out: the provider was never asked. */
  readonly ours?: boolean;
}

const OURS: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOMEM', 'ENOBUFS']);

/** A failure on the way through a proxy, already in words of ours: it tells no secret. */
export class ProxyError extends Error {
  /** Trap: the library tries again on its own for some codes of its own. */
  readonly code = 'ERR_PROXY';

  constructor(readonly reason: string) {
    super(reason);
  }

  /** Of a connection to the proxy that did not come about. */
  static from(error: unknown): ProxyError {
    return new ProxyError(`proxy: ${describeTransportError(error).reason}`);
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection closed while sending',
  ENOTFOUND: 'host name not found',
  EAI_AGAIN: 'host name lookup failed',
  ETIMEDOUT: 'connection timed out',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  EADDRNOTAVAIL: 'no local address left',
  EMFILE: 'no file descriptor left',
  ENFILE: 'no file descriptor left',
  UND_ERR_CONNECT_TIMEOUT: 'connect timeout',
  UND_ERR_SOCKET: 'connection closed by the provider',
  UND_ERR_HEADERS_OVERFLOW: 'response head too large',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'response length does not match content-length',
  UND_ERR_RES_EXCEEDED_MAX_SIZE: 'response too large',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'TLS: self-signed certificate',
  SELF_SIGNED_CERT_IN_CHAIN: 'TLS: self-signed certificate in the chain',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'TLS: certificate cannot be verified',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'TLS: certificate is from an unknown authority',
  UNABLE_TO_GET_ISSUER_CERT: 'TLS: certificate is from an unknown authority',
  CERT_HAS_EXPIRED: 'TLS: certificate expired',
  CERT_NOT_YET_VALID: 'TLS: certificate not valid yet',
  CERT_REVOKED: 'TLS: certificate revoked',
  ERR_TLS_CERT_ALTNAME_INVALID: 'TLS: certificate is for another host',
  ERR_SSL_WRONG_VERSION_NUMBER:
    'TLS: what answers at this port does not speak TLS; should the url begin with http://?',
  ENAMETOOLONG: 'host name not valid',
};

const CLIENT_CERTIFICATE = 'tls.cert and tls.key';
const REFUSED = 'TLS: the provider refuses the client certificate, or the lack of one';

/** What the other side says in TLS before it closes (RFC 8446 §6.2). OpenSSL puts one of several words before the same name. */
const ALERTS: Readonly<Record<string, string>> = {
  CERTIFICATE_REQUIRED: `TLS: the provider asks for a client certificate: ${CLIENT_CERTIFICATE}`,
  // Some servers say no more than this where a certificate is missing.
  HANDSHAKE_FAILURE: `TLS: the provider refuses the handshake; it may ask for a client certificate (${CLIENT_CERTIFICATE})`,
  BAD_CERTIFICATE: `${REFUSED} (bad certificate): ${CLIENT_CERTIFICATE}`,
  UNSUPPORTED_CERTIFICATE: `${REFUSED} (unsupported certificate): ${CLIENT_CERTIFICATE}`,
  CERTIFICATE_REVOKED: `${REFUSED} (certificate revoked): ${CLIENT_CERTIFICATE}`,
  CERTIFICATE_EXPIRED: `${REFUSED} (certificate expired): ${CLIENT_CERTIFICATE}`,
  CERTIFICATE_UNKNOWN: `${REFUSED} (certificate unknown): ${CLIENT_CERTIFICATE}`,
  UNKNOWN_CA: `${REFUSED} (unknown authority): ${CLIENT_CERTIFICATE}`,
  ACCESS_DENIED: `${REFUSED} (access denied): ${CLIENT_CERTIFICATE}`,
  PROTOCOL_VERSION: 'TLS: the provider speaks no version of TLS that is spoken here',
};
const ALERT = /^ERR_SSL_.+_ALERT_([A-Z_]+)$/;

/** Of an error and one that its socket met before: what the other side said in TLS tells more than that it closed then. */
export function tellingError(error: unknown, ofSocket: Error | null): unknown {
  if (ofSocket === null || error instanceof ProxyError) return error;
  return ALERT.test(codeOf(ofSocket) ?? '') ? ofSocket : error;
}

/** Trap: texts of library errors can hold bytes of the provider, so only codes decide what is said. */
export function describeTransportError(error: unknown): TransportFailure {
  if (error instanceof ProxyError) return { reason: error.reason };
  const code = codeOf(error);
  if (error instanceof errors.HTTPParserError) return { reason: 'malformed HTTP' };
  if (code === undefined) return { reason: 'connection failed' };
  if (code.startsWith('HPE_')) return { reason: `malformed HTTP (${code})` };
  const known = REASONS[code];
  if (OURS.has(code)) return { reason: known ?? `connection failed (${code})`, ours: true };
  if (known !== undefined) return { reason: known };
  const alert = ALERTS[ALERT.exec(code)?.[1] ?? ''];
  if (alert !== undefined) return { reason: alert };
  if (code.startsWith('ERR_SSL') || code.startsWith('ERR_TLS') || code.includes('CERT'))
    return { reason: `TLS: ${code}` };
  return { reason: `connection failed (${code})` };
}

/** Trap: OpenSSL's `SSL/TLS` stands in codes too. The code of an error or, for a failed dual-stack connect, of its first cause. */
function codeOf(error: unknown): string | undefined {
  const { code, errors } = error as { code?: unknown; errors?: unknown };
  if (typeof code === 'string' && /^[A-Z0-9_/]{2,60}$/.test(code)) return code;
  return Array.isArray(errors) && errors.length > 0 ? codeOf(errors[0]) : undefined;
}

/** Whether this error can mean that a kept-alive socket had been closed before the request arrived. */
export function isStaleSocketError(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_SOCKET';
}
