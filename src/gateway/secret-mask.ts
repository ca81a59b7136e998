import { CREDENTIAL_HEADER } from '../common/http/header-syntax.js';
import { maskIn } from '../common/text/mask.js';
import type { ProviderConfig } from '../config/gateway-config.js';

/** A shorter secret is a placeholder such as `none`: masking it would garble answers, not protect anything. */
const SHORTEST_MASKED = 8;

/**
 * What must never come back from a provider: its keys, the fixed headers that look like credentials, and what the proxy on
 * the way was shown.
 */
export function secretsOf(provider: ProviderConfig): string[] {
  const secrets = [
    provider.key,
    ...(provider.keys ?? []).map(({ value }) => value),
    ...proxySecrets(provider.proxy?.authorization ?? null),
  ];
  for (const [name, value] of provider.headers) {
    if (!CREDENTIAL_HEADER.test(name)) continue;
    secrets.push(value.startsWith('Bearer ') ? value.slice('Bearer '.length) : value);
  }
  return [...new Set(secrets)].filter((secret) => secret.length >= SHORTEST_MASKED);
}

/** The pair as it is sent, and its password. */
function proxySecrets(authorization: string | null): string[] {
  if (authorization === null) return [];
  const pair = authorization.slice('Basic '.length);
  const decoded = Buffer.from(pair, 'base64').toString('utf8');
  return [pair, decoded.slice(decoded.indexOf(':') + 1)];
}

/** Masks every copy of these secrets in a header value, which must stay in ASCII. */
export function headerMask(secrets: readonly string[]): (text: string) => string {
  const shortest = Math.min(...secrets.map(({ length }) => length));
  return (text) => {
    if (text.length < shortest) return text;
    const holdsOne = secrets.some((secret) => text.includes(secret));
    return holdsOne ? maskIn(text, secrets).replaceAll('…', '...') : text;
  };
}

/** For a provider without secrets. */
export const nothingMasked = (bytes: Buffer): Buffer => bytes;

/** Masks every copy of these secrets in a body; the very same buffer where there is none. */
export function bodyMask(secrets: readonly string[]): (bytes: Buffer) => Buffer {
  if (secrets.length === 0) return nothingMasked;
  const inBytes = secrets.map(latin1);
  const ellipsis = latin1('…');
  return (bytes) => {
    if (!secrets.some((secret) => bytes.includes(secret))) return bytes;
    return Buffer.from(maskIn(bytes.toString('latin1'), inBytes).replaceAll('…', ellipsis), 'latin1');
  };
}

/** UTF-8 bytes as a text of one character a byte, so that bodies of any encoding keep their other bytes. */
function latin1(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}
