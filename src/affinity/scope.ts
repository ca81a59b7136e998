import { hash } from 'node:crypto';
import { canonOfValue } from '../common/history/canon.js';

/** Half of a SHA-256: enough to tell scopes apart, and it stands before every prefix that is remembered. */
const SCOPE_LENGTH = 16;
const TOOLS_LIMIT = 1000;

/**
 * What a conversation belongs to beside its messages: the consumer, the model, and the tools, which providers put before
 * all messages. Owns a bounded memory of lists of tools, by the hash of their bytes, because clients send the same long
 * list with every request.
 */
export class Scopes {
  /** Hash of the bytes → hash of the canonical form; least recently used first. */
  readonly #tools = new Map<string, string>();

  of(consumer: string, model: string, tools: Buffer | undefined): string {
    const text = JSON.stringify([consumer, model]) + (tools === undefined ? '' : this.#hashOf(tools));
    return hash('sha256', text, 'binary').slice(0, SCOPE_LENGTH);
  }

  #hashOf(tools: Buffer): string {
    const key = hash('sha256', tools, 'binary');
    const known = this.#tools.get(key);
    const digest = known ?? hash('sha256', canonOfValue(tools), 'binary');
    this.#tools.delete(key);
    this.#tools.set(key, digest);
    for (const [oldest] of this.#tools) {
      if (this.#tools.size <= TOOLS_LIMIT) break;
      this.#tools.delete(oldest);
    }
    return digest;
  }
}
