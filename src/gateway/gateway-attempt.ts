import type { JsonDocument } from '../common/json/json-document.js';
import type { UpstreamConfig } from '../config/gateway-config.js';
import type { Attempt, Exchange } from '../contracts/exchange.js';
import { AttemptHeaders } from './attempt-headers.js';
import type { AttemptQuota } from './attempt-quota.js';

/** The engine's side of an {@link Attempt}. Lives for one request to one upstream. */
export class GatewayAttempt implements Attempt {
  /** Null where no quota counts it: the common case. */
  quota: AttemptQuota | null = null;
  #headers: Map<string, string> | null = null;

  constructor(
    readonly exchange: Exchange,
    readonly upstream: UpstreamConfig,
    readonly key: string | null,
    readonly number: number,
    readonly body: JsonDocument,
    readonly probe: boolean,
  ) {}

  get headers(): Map<string, string> {
    return (this.#headers ??= new AttemptHeaders());
  }

  /** Null where no stage set any: the common case. */
  get setHeaders(): ReadonlyMap<string, string> | null {
    return this.#headers;
  }
}
