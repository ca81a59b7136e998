import { SetMetadata, type CustomDecorator } from '@nestjs/common';
import type { ModelConfig, UpstreamConfig } from '../config/gateway-config.js';
import type { Attempt, AttemptFailure, Exchange, ExchangeOutcome } from './exchange.js';
import type { OperationName } from './operation.js';
import type { StreamObserver, StreamTransform } from './stream.js';

/** Fixed text, not a symbol: a plugin that brings its own copy of this package must still be found. */
export const INTERCEPTOR_METADATA = 'llm-proxy:interceptor';

/** Customary places in the pipeline; ties are broken by id. */
export const Order = { identity: 100, session: 200, policy: 300, shape: 500, observe: 700 } as const;

export interface InterceptorOptions {
  /** Unique in the service; the name in `disable:` and in the log. */
  readonly id: string;
  /** Ascending for requests and answers, descending for `onFinish`. Default {@link Order.shape}. */
  readonly order?: number;
  /** A class-validator class for this plugin's `config`; a bad one stops the boot with the key's path. */
  readonly config?: new () => object;
}

/** Marks a Nest provider as an {@link ExchangeInterceptor}. */
export const RegisterInterceptor = (options: InterceptorOptions): CustomDecorator =>
  SetMetadata(INTERCEPTOR_METADATA, options);

/** One way through the gateway: this model, answered by this upstream, for requests of one kind. */
export interface Target {
  readonly model: ModelConfig;
  readonly upstream: UpstreamConfig;
  /** What is asked; a stage that reads chat completions says no to all others. */
  readonly operation: OperationName;
}

/**
 * A stage of the request and response pipelines. Implement what you need; what is absent costs nothing.
 * One instance serves all requests: keep what belongs to one request in `exchange.notes` or in the transform.
 */
export interface ExchangeInterceptor {
  /** At boot, with the validated `config` of the file (an instance of `options.config`, or the plain object). */
  configure?(config: unknown): void | Promise<void>;
  /** Asked once for each target when pipelines are compiled: false leaves this interceptor out for it. */
  appliesTo?(target: Target): boolean;
  /** Once for a request, before any upstream is chosen. Throwing ends the request with `plugin_failed`. */
  onRequest?(exchange: Exchange): void | Promise<void>;
  /** Before each attempt is sent, may be called for several attempts. Throwing ends the request with `plugin_failed`. */
  onAttempt?(attempt: Attempt): void | Promise<void>;
  /** When the head of an answer has come that may be sent (it can still fail over): a transform for it, or null. */
  onResponse?(exchange: Exchange, attempt: Attempt): StreamTransform | null;
  /** Like `onResponse`, for reading only. */
  observe?(exchange: Exchange, attempt: Attempt): StreamObserver | null;
  /** An attempt failed and another upstream may be tried. A throw is logged and counted. */
  onFailover?(exchange: Exchange, attempt: Attempt, failure: AttemptFailure): void;
  /** The exchange is over, in reverse order. A throw is logged and counted. */
  onFinish?(exchange: Exchange, outcome: ExchangeOutcome): void;
}
