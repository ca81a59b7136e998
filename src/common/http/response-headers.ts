import { connectionTokens } from './request-headers.js';

/** A provider's response headers that never reach a client. */
const DROPPED = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'set-cookie',
  'server',
]);

export type UpstreamHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** First value of a header, or undefined. */
export function headerValue(headers: UpstreamHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : value?.[0];
}

/** Trap: a body that only the connection's end delimits looks whole wherever it is cut. */
export function endsWithConnection(headers: UpstreamHeaders): boolean {
  return (
    headerValue(headers, 'content-length') === undefined &&
    headerValue(headers, 'transfer-encoding') === undefined
  );
}

/** Trap: only the framing (`chunked`) is undone below us; what else was done to the bytes stays done. */
export function hasForeignTransferCoding(headers: UpstreamHeaders): boolean {
  const value = headers['transfer-encoding'];
  if (value === undefined || value === 'chunked') return false;
  const codings = String(value).toLowerCase().split(',');
  return codings.some((coding) => !['chunked', 'identity', ''].includes(coding.trim()));
}

export interface ResponseHeaderOptions {
  /** The body is not the upstream's byte for byte: its length, coding and digests are no longer true. */
  readonly bodyChanged: boolean;
  /** Further names to leave out, since ours stand in their place. */
  readonly without: ReadonlySet<string> | null;
  /** Applied to every value, to mask our keys. */
  readonly mask: (value: string) => string;
}

/** Headers that speak of the exact bytes of a body. */
const OF_THE_BYTES = new Set([
  'content-length',
  'content-encoding',
  'etag',
  'content-md5',
  'digest',
  'content-digest',
  'repr-digest',
]);

/** The end-to-end headers of an upstream's answer as a flat list of names and values. */
export function relayedHeaders(headers: UpstreamHeaders, options: ResponseHeaderOptions): string[] {
  const named = connectionTokens(headerValue(headers, 'connection'));
  const relayed: string[] = [];
  for (const name in headers) {
    if (DROPPED.has(name) || named?.has(name)) continue;
    if (name.startsWith('x-llm-proxy-') || name.startsWith('access-control-')) continue;
    if (options.without?.has(name) || (options.bodyChanged && OF_THE_BYTES.has(name))) continue;
    const target = name === 'x-request-id' ? 'x-upstream-request-id' : name;
    const value = headers[name];
    if (typeof value === 'string') relayed.push(target, options.mask(value));
    else if (value) for (const one of value) relayed.push(target, options.mask(one));
  }
  return relayed;
}

/** The coding of a body in lower case, or null where it is plain. */
export function contentCoding(headers: UpstreamHeaders): string | null {
  const value = headerValue(headers, 'content-encoding')?.trim().toLowerCase();
  return value === undefined || value === '' || value === 'identity' ? null : value;
}

/** An id as a header value: as it is where visible ASCII without `%`, else percent-encoded. */
export function headerSafeId(id: string): string {
  for (let i = 0; i < id.length; i++) {
    const code = id.charCodeAt(i);
    if (code <= 0x20 || code >= 0x7f || code === 0x25) return encodeURIComponent(id.toWellFormed());
  }
  return id;
}
