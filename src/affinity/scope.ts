import { hash } from 'node:crypto';
import { valueDigest } from '../common/history/canon-digest.js';

/** Half of a SHA-256: enough to tell scopes apart, and it stands before every prefix that is remembered. */
const SCOPE_LENGTH = 16;
const VALUES_LIMIT = 1000;

/**
 * What a conversation belongs to beside its messages: the consumer, the model, and what providers put before all
 * messages, such as the tools. Owns a bounded memory of such values, by the hash of their bytes, because clients send the
 * same long list of tools with every request.
 */
export class Scopes {
  /** Hash of the bytes → hash of the canonical form; least recently used first. */
  readonly #known = new Map<string, string>();

  /** `before`: JSON values that come before the messages, in an order of their own. */
  of(consumer: string, model: string, before: readonly (Buffer | undefined)[]): string {
    let text = JSON.stringify([consumer, model]);
    for (const value of before) text += value === undefined ? ',' : `,${this.#hashOf(value)}`;
    return hash('sha256', text, 'binary').slice(0, SCOPE_LENGTH);
  }

  #hashOf(value: Buffer): string {
    const key = hash('sha256', value, 'binary');
    const known = this.#known.get(key);
    const digest = known ?? valueDigest(value);
    this.#known.delete(key);
    this.#known.set(key, digest);
    for (const [oldest] of this.#known) {
      if (this.#known.size <= VALUES_LIMIT) break;
      this.#known.delete(oldest);
    }
    return digest;
  }
}
