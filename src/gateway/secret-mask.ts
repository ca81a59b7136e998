import { maskSecret } from '../common/text/mask.js';
import type { ProviderConfig } from '../config/gateway-config.js';

/** A shorter secret is a placeholder such as `none`: masking it would garble answers, not protect anything. */
const SHORTEST_MASKED = 8;

const CREDENTIAL_HEADER = /authorization|api-?key|token|secret|cookie|password/;

/** What must never come back from a provider: its key and the fixed headers that look like credentials. */
export function secretsOf(provider: ProviderConfig): string[] {
  const secrets = [provider.key];
  for (const [name, value] of provider.headers) {
    if (!CREDENTIAL_HEADER.test(name)) continue;
    secrets.push(value.startsWith('Bearer ') ? value.slice('Bearer '.length) : value);
  }
  return [...new Set(secrets)].filter((secret) => secret.length >= SHORTEST_MASKED);
}

/** Masks every copy of these secrets in a header value, which must stay in ASCII. */
export function headerMask(secrets: readonly string[]): (text: string) => string {
  const longestFirst = byLength(secrets);
  return (text) => {
    let masked = text;
    for (const secret of longestFirst) {
      if (masked.includes(secret)) masked = masked.split(secret).join(maskSecret(secret).replace('…', '...'));
    }
    return masked;
  };
}

/** Masks every copy of these secrets in a body; the very same buffer where there is none. */
export function bodyMask(secrets: readonly string[]): (bytes: Buffer) => Buffer {
  const longestFirst = byLength(secrets);
  return (bytes) => {
    let masked = bytes;
    for (const secret of longestFirst) {
      if (!masked.includes(secret)) continue;
      masked = Buffer.from(
        masked
          .toString('latin1')
          .split(latin1(secret))
          .join(latin1(maskSecret(secret))),
        'latin1',
      );
    }
    return masked;
  };
}

/** Of two secrets that begin alike the longer one goes first, or its end would stay. */
function byLength(secrets: readonly string[]): string[] {
  return [...secrets].sort((a, b) => b.length - a.length);
}

/** UTF-8 bytes as a text of one character a byte, so that bodies of any encoding keep their other bytes. */
function latin1(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}
