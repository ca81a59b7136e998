import { type Clock, monotonicClock } from '../common/time/clock.js';
import type { ProviderConfig } from '../config/gateway-config.js';
import { Connection, type ConnectionOptions } from './connection.js';
import { type AbsoluteForm, routeTo } from './provider-route.js';

const CONNECT_TIMEOUT_MS = 10_000;
/** Shorter than what load balancers commonly allow, so that few requests meet a socket that is being closed. */
const KEEP_ALIVE_MS = 20_000;
/** Names are looked up for each new connection: none is used for so long that a change in DNS goes unnoticed. */
const MAX_AGE_MS = 5 * 60_000;
/** Of a response; heads of at least 16 KiB are accepted. */
const HEAD_LIMIT_BYTES = 64 * 1024;

/**
 * The connections of one provider. Lends a connection to one exchange at a time: the most recently used idle one, or a
 * new one, so the pool never limits below the slots. Lives as long as the provider stays in the configuration.
 */
export class ProviderClient {
  /** Path of the provider's url, without a trailing slash. */
  readonly basePath: string;
  /** Of requests that a proxy reads; null = none does. */
  readonly absoluteForm: AbsoluteForm | null;
  readonly #options: ConnectionOptions;
  /** A stack; connections that closed meanwhile are skipped when they come up. */
  readonly #idle: Connection[] = [];
  #closed = false;

  constructor(
    readonly config: ProviderConfig,
    private readonly clock: Clock = monotonicClock,
  ) {
    const limits = { connectTimeoutMs: CONNECT_TIMEOUT_MS, headLimitBytes: HEAD_LIMIT_BYTES };
    const { absoluteForm, basePath, connector, origin } = routeTo(config, limits);
    this.basePath = basePath;
    this.absoluteForm = absoluteForm;
    this.#options = {
      origin,
      connector,
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
      if (this.#usable(connection)) return connection;
      connection.destroy(() => {});
    }
    return new Connection(this.#options, this.clock.now());
  }

  /** Takes back a connection whose exchange has cleanly ended. */
  giveBack(connection: Connection): void {
    if (this.#closed || !this.#usable(connection)) {
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

  #usable(connection: Connection): boolean {
    return connection.open && this.clock.now() - connection.openedAt < MAX_AGE_MS;
  }

  /** One that closed while it was idle; one that closed in use is not in the list. */
  #forget(connection: Connection): void {
    const index = this.#idle.indexOf(connection);
    if (index >= 0) this.#idle.splice(index, 1);
  }
}
