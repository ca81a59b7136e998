import type { IncomingHttpHeaders } from 'node:http';
import type { JsonDocument } from '../common/json/json-document.js';
import type { ModelConfig, UpstreamConfig } from '../config/gateway-config.js';
import type { ErrorClass } from './error-class.js';
import type { OperationName } from './operation.js';
import type { Consumer } from './consumer.js';

/** Outcome of one attempt, as in `llm_proxy_requests_total{result}`. */
export type AttemptResult = 'ok' | '4xx' | '429' | '402' | '5xx' | 'net_err' | 'timeout' | 'cancelled';

/** One request of a client, from the moment its body is complete until its answer is over. Made once, finished once. */
export interface Exchange {
  /** The request id: the client's where it is sane, else a new one. */
  readonly id: string;
  /** The entry of the file that the client asked for. */
  readonly model: ModelConfig;
  /** What is asked of the model; most stages are made for `chat`. */
  readonly operation: OperationName;
  /** Who asks; null where the file has no consumers. */
  readonly consumer: Consumer | null;
  /** Id of the route of the file under which the request came. */
  readonly route: string;
  /** The client's request headers, names in lower case. Never log them: they may hold credentials. */
  readonly headers: Readonly<IncomingHttpHeaders>;
  /** The client's query string with its `?`, or ''. */
  readonly query: string;
  /** The client's JSON. `onRequest` may change it; each attempt starts from a copy of it. */
  readonly body: JsonDocument;
  /** Aborted when the client has gone or the service gives up on the exchange. */
  readonly signal: AbortSignal;
  /** What was tried by now, in order: frozen, and another list once there is more to tell. */
  readonly attempts: readonly AttemptRecord[];
  /** A place for an interceptor's own notes; key them with a symbol of your own. */
  readonly notes: Map<symbol, unknown>;
}

export interface AttemptRecord {
  readonly upstream: string;
  readonly provider: string;
  /** Id of the key, where the provider has more than one. */
  readonly key?: string;
  readonly result: AttemptResult;
  /** HTTP status of the upstream, where one came. */
  readonly status?: number;
}

/** One request to one upstream, before it is sent. */
export interface Attempt {
  readonly exchange: Exchange;
  readonly upstream: UpstreamConfig;
  /** Id of the key it uses; null where the provider has no `keys`. */
  readonly key: string | null;
  /** 1 for the first attempt of the exchange. */
  readonly number: number;
  /** This attempt's own copy of the body; changes stay in this attempt. */
  readonly body: JsonDocument;
  /** Request headers to set, names in lower case; they replace the client's. The provider's fixed `headers` win over them. */
  readonly headers: Map<string, string>;
  /** True for a background probe: there is no client, nothing may be remembered. */
  readonly probe: boolean;
}

/** Why an attempt failed. Its texts are ours: no header, body or key of a provider is in them. */
export interface AttemptFailure {
  readonly result: AttemptResult;
  readonly status?: number;
  /** What kind of failure; always there when a plugin is told. */
  readonly class?: ErrorClass;
  /** A time was over, ours: the same may not be tried at once again. */
  readonly timedOut?: boolean;
  /**
   * This side did not even ask, for want of a file descriptor or a port, or because a plugin took the time; or it cannot hold
   * what the client asked for: no fault of the upstream, which does not rest.
   */
  readonly ours?: boolean;
  /** One line for the log, such as `returned 503` or `connection refused`. */
  readonly reason: string;
  /** What the provider asked for, in `Retry-After` or, where it limits the rate, in any of its headers. */
  readonly retryAfterMs?: number;
}

/** How an exchange ended. */
export interface ExchangeOutcome {
  /** Result of the last attempt; undefined where none was made. */
  readonly result?: AttemptResult;
  /** Status sent to the client; 0 where it left before one was sent. */
  readonly status: number;
  readonly durationMs: number;
  /** False where an answer had begun and could not be finished. */
  readonly complete: boolean;
}
