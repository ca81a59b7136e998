import { SetMetadata, type CustomDecorator } from '@nestjs/common';
import type { UpstreamConfig } from '../config/gateway-config.js';

/**
 * What kind of failure an answer of a provider is, as in `llm_proxy_failures_total{class}` and `errors:` of the file.
 * The class says what rests, for how long, and whether another key or another upstream is tried.
 */
export const ERROR_CLASSES = [
  'rate_limited',
  'quota_exhausted',
  'unauthorized',
  'model_gone',
  'server_error',
  'busy',
  'bad_request',
  'context_length',
] as const;

export type ErrorClass = (typeof ERROR_CLASSES)[number];

/** An answer that is no success, as a classifier sees it. Holds a provider's own words: never log them. */
export interface FailedAnswer {
  readonly upstream: UpstreamConfig;
  /** 400…599, or 2xx where an error object stood in the answer. */
  readonly status: number;
  /** A response header by its name in lower case. */
  readonly header: (name: string) => string | undefined;
  /** The body as JSON; undefined where it is none. */
  readonly json: unknown;
  /** The body as text, cut where it is long. */
  readonly text: string;
}

/** Fixed text, not a symbol: a plugin that brings its own copy of this package must still be found. */
export const ERROR_CLASSIFIER_METADATA = 'llm-proxy:error-classifier';

export interface ErrorClassifierOptions {
  /** Unique among classifiers; the name in the log. */
  readonly id: string;
  /** Ascending; ties are broken by id. Default 500. */
  readonly order?: number;
}

/** Marks a Nest provider as an {@link ErrorClassifier}. */
export const RegisterErrorClassifier = (options: ErrorClassifierOptions): CustomDecorator =>
  SetMetadata(ERROR_CLASSIFIER_METADATA, options);

/**
 * Asked before the built-in table, for each failed answer of a provider with `errors: classified`. Synchronous. The first
 * class that one of them returns counts; undefined leaves it to the next. A throw is logged, counted, and means undefined.
 */
export interface ErrorClassifier {
  classify(answer: FailedAnswer): ErrorClass | undefined;
}
