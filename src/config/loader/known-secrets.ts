import { maskKeys } from '../../common/text/shown-value.js';
import { maskSecret } from '../../common/text/mask.js';

/** A shorter secret is a placeholder such as `none`. Secrets are looked up by as many characters. */
const SHORTEST_MASKED = 8;

/**
 * The secrets that a configuration holds, so that no message shows one which was also written where it does not belong.
 * Lives as long as what was read is being judged; never kept beside a running configuration.
 */
export class KnownSecrets {
  readonly #byStart = new Map<string, Set<string>>();

  add(written: string): void {
    const secret = written.trim();
    if (secret.length < SHORTEST_MASKED) return;
    const start = secret.slice(0, SHORTEST_MASKED);
    const alike = this.#byStart.get(start);
    if (alike === undefined) this.#byStart.set(start, new Set([secret]));
    else alike.add(secret);
  }

  /** A message without these secrets, and without what looks like one. */
  mask(message: string): string {
    return maskKeys(this.#byStart.size === 0 ? message : this.#maskKnown(message));
  }

  #maskKnown(message: string): string {
    let masked = '';
    let quoted = false;
    for (let i = 0; i < message.length; i++) {
      if (message[i] === '"') quoted = !quoted;
      const found = this.#longestAt(message, i, quoted);
      if (found === null) masked += message[i];
      else {
        masked += maskSecret(found.secret);
        i += found.length - 1;
      }
    }
    return masked;
  }

  #longestAt(message: string, at: number, quoted: boolean): { secret: string; length: number } | null {
    let longest: { secret: string; length: number } | null = null;
    for (const secret of this.#byStart.get(message.slice(at, at + SHORTEST_MASKED)) ?? []) {
      // A placeholder may be a word that a message of ours says: then only quoted words are the file's.
      if (!quoted && /^[a-z_-]+$/.test(secret)) continue;
      const length = lengthOf(secret, message, at);
      if (length > (longest?.length ?? 0)) longest = { secret, length };
    }
    return longest;
  }
}

/** How much of the secret stands there: all of it, or what was left of it where a value was cut; else 0. */
function lengthOf(secret: string, message: string, at: number): number {
  let length = SHORTEST_MASKED;
  while (length < secret.length && message[at + length] === secret[length]) length++;
  return length === secret.length || message[at + length] === '…' ? length : 0;
}
