import { hash, randomBytes, timingSafeEqual } from 'node:crypto';

/** SHA-256 of a key as it came in a header (one character a byte), in lower-case hex. */
export function digestOfKey(key: string): string {
  return hash('sha256', Buffer.from(key, 'latin1'), 'hex');
}

/** The same as a text of one character a byte. */
export function digestBytesOfKey(key: string): string {
  return hash('sha256', Buffer.from(key, 'latin1'), 'binary');
}

/** A digest in hex as {@link digestBytesOfKey} gives it. */
export function asBytes(digest: string): string {
  return Buffer.from(digest, 'hex').toString('latin1');
}

/** Compares by digests, in a time that tells nothing. */
export function isSameKey(given: string, wanted: string): boolean {
  return timingSafeEqual(Buffer.from(digestOfKey(given)), Buffer.from(digestOfKey(wanted)));
}

/** A new key for a consumer, and the line of the file that lets it in. It is shown here and kept nowhere. */
export function newKeyLines(id: string): readonly string[] {
  const key = newKey();
  return [key, `- { id: ${JSON.stringify(id)}, sha256: "${digestOfKey(key)}" }`];
}

/** A new key for a consumer: 256 random bits behind a prefix that says whose it is. */
export function newKey(): string {
  return `lp-${randomBytes(32).toString('base64url')}`;
}
