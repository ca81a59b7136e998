import { buildConnector } from 'undici';
import type { ProviderConfig } from '../config/gateway-config.js';
import { Connection, type ConnectionOptions } from './connection.js';

const CONNECT_TIMEOUT_MS = 10_000;
/** Shorter than what load balancers commonly allow, so that few requests meet a socket that is being closed. */
const KEEP_ALIVE_MS = 20_000;
/** Of a response; heads of at least 16 KiB are accepted (spec 01 §5). */
const HEAD_LIMIT_BYTES = 64 * 1024;

/**
 * The connections of one provider. Lends a connection to one exchange at a time: the most recently used idle one, or a
 * new one, so the pool never limits below the slots. Lives as long as the provider stays in the configuration.
 */
export class ProviderClient {
  /** Path of the provider's url, without a trailing slash. */
  readonly basePath: string;
  readonly #options: ConnectionOptions;
  /** A stack; connections that closed meanwhile are skipped when they come up. */
  readonly #idle: Connection[] = [];
  #closed = false;

  constructor(readonly config: ProviderConfig) {
    // Joined by hand: `new URL('/x', base)` would drop the path of the base.
    const url = new URL(config.url);
    this.basePath = url.pathname === '/' ? '' : url.pathname;
    this.#options = {
      origin: url.origin,
      connector: buildConnector({ timeout: CONNECT_TIMEOUT_MS, allowH2: false }),
      keepAliveTimeoutMs: KEEP_ALIVE_MS,
      headLimitBytes: HEAD_LIMIT_BYTES,
      closed: (connection) => this.#forget(connection),
    };
  }

  get idleConnections(): number {
    return this.#idle.length;
  }

  /** An idle connection, or a new one. `fresh` asks for one whose socket was never used. */
  take(fresh = false): Connection {
    while (!fresh && this.#idle.length > 0) {
      const connection = this.#idle.pop() as Connection;
      if (connection.open) return connection;
    }
    return new Connection(this.#options);
  }

  /** Takes back a connection whose exchange has cleanly ended. */
  giveBack(connection: Connection): void {
    if (this.#closed || !connection.open) {
      connection.destroy(() => {});
      return;
    }
    this.#idle.push(connection);
  }

  /** Closes idle connections, now and in future. */
  close(): void {
    this.#closed = true;
    for (const connection of this.#idle.splice(0)) connection.destroy(() => {});
  }

  /** One that closed while it was idle; one that closed in use is not in the list. */
  #forget(connection: Connection): void {
    const index = this.#idle.indexOf(connection);
    if (index >= 0) this.#idle.splice(index, 1);
  }
}
