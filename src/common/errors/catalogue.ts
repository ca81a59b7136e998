import { streamInterrupted } from './error-form.js';
import { GatewayError } from './gateway-error.js';

/** Every answer the proxy gives by itself: code, status, text. Codes are part of the API and are never reused. */

const invalidRequest = 'invalid_request_error';

/** After these nothing on the connection can be trusted, or is waited for. */
const CLOSE = { connection: 'close' } as const;

export const invalidJson = (reason: string): GatewayError =>
  new GatewayError({
    status: 400,
    code: 'invalid_json',
    type: invalidRequest,
    message: `The request body must be a JSON object: ${reason}.`,
  });

export const invalidBodyCoding = (coding: string): GatewayError =>
  new GatewayError({
    status: 400,
    code: 'invalid_content_encoding',
    type: invalidRequest,
    message: `The request body is no valid ${coding} data.`,
  });

/** `why` goes on after "the form", where it is one. */
export const missingModel = (why?: string): GatewayError =>
  new GatewayError({
    status: 400,
    code: 'missing_model',
    type: invalidRequest,
    message:
      why === undefined
        ? 'The field "model" must be a string that names a model of this service.'
        : `The form must have a field "model" that names a model of this service, but it ${why}.`,
    param: 'model',
  });

export const unknownModel = (shownName: string): GatewayError =>
  new GatewayError({
    status: 404,
    code: 'model_not_found',
    type: invalidRequest,
    message: `The model "${shownName}" does not exist here. GET /v1/models lists the models of this service.`,
    param: 'model',
  });

/** `why` completes "The header x …". */
export const noCandidates = (header: string, why: string): GatewayError =>
  new GatewayError({
    status: 400,
    code: 'no_candidates',
    type: invalidRequest,
    message: `The header ${header} ${why}.`,
    param: header,
  });

/** `posted`: paths below `/v1`. */
export const unknownPath = (posted: readonly string[]): GatewayError =>
  new GatewayError({
    status: 404,
    code: 'unknown_path',
    type: invalidRequest,
    message: `Unknown path. This service answers GET /v1/models, and POST /v1 and one of ${posted.join(', ')}.`,
  });

export const wrongMethod = (allow: string): GatewayError =>
  new GatewayError({
    status: 405,
    code: 'method_not_allowed',
    type: invalidRequest,
    message: `Wrong method for this path; allowed: ${allow}.`,
    headers: { allow },
  });

export const unsupportedMediaType = (wanted = 'application/json'): GatewayError =>
  new GatewayError({
    status: 415,
    code: 'unsupported_media_type',
    type: invalidRequest,
    message: `The content type must be ${wanted}.`,
  });

export const unsupportedCoding = (): GatewayError =>
  new GatewayError({
    status: 415,
    code: 'unsupported_content_encoding',
    type: invalidRequest,
    message: 'The content encoding must be one of gzip, deflate, br, zstd, or none.',
  });

export const bodyTooLarge = (limitBytes: number): GatewayError =>
  new GatewayError({
    status: 413,
    code: 'request_too_large',
    type: invalidRequest,
    message: `The request body is larger than ${limitBytes} bytes (server.body_limit).`,
  });

export const malformedRequest = (): GatewayError =>
  new GatewayError({
    status: 400,
    code: 'malformed_request',
    type: invalidRequest,
    message: 'The request is not valid HTTP/1.1.',
    headers: CLOSE,
  });

export const headersTooLarge = (): GatewayError =>
  new GatewayError({
    status: 431,
    code: 'headers_too_large',
    type: invalidRequest,
    message: 'The request headers are too large.',
    headers: CLOSE,
  });

export const requestTimeout = (): GatewayError =>
  new GatewayError({
    status: 408,
    code: 'request_timeout',
    type: invalidRequest,
    message: 'The request did not arrive in time.',
    headers: CLOSE,
  });

export const unsupportedVersion = (): GatewayError =>
  new GatewayError({
    status: 505,
    code: 'unsupported_http_version',
    type: invalidRequest,
    message: 'This service speaks HTTP/1.1 and HTTP/1.0.',
    headers: CLOSE,
  });

export const invalidHost = (): GatewayError =>
  new GatewayError({
    status: 400,
    code: 'invalid_host',
    type: invalidRequest,
    message: 'The request must have one valid Host header.',
    headers: CLOSE,
  });

export const unsupportedTransferCoding = (): GatewayError =>
  new GatewayError({
    status: 501,
    code: 'unsupported_transfer_encoding',
    type: invalidRequest,
    message: 'The only transfer encoding that this service understands is chunked.',
    headers: CLOSE,
  });

export const unknownMethod = (): GatewayError =>
  new GatewayError({
    status: 501,
    code: 'unknown_method',
    type: invalidRequest,
    message: 'This service does not know that method.',
    headers: CLOSE,
  });

export const unknownExpectation = (): GatewayError =>
  new GatewayError({
    status: 417,
    code: 'unknown_expectation',
    type: invalidRequest,
    message: 'The only expectation that this service can meet is 100-continue.',
    headers: CLOSE,
  });

export const invalidHeader = (): GatewayError =>
  new GatewayError({
    status: 400,
    code: 'invalid_header',
    type: invalidRequest,
    message: 'A request header or the query holds characters that cannot be passed on.',
  });

export const shuttingDown = (): GatewayError =>
  new GatewayError({
    status: 503,
    code: 'shutting_down',
    type: 'server_error',
    message: 'This instance is shutting down.',
    headers: { 'retry-after': '1', 'retry-after-ms': '1000', connection: 'close' },
  });

/** What the replicas share cannot be reached, and `state.on_error` says that nothing is served without it. */
export const stateUnavailable = (): GatewayError =>
  new GatewayError({
    status: 503,
    code: 'state_unavailable',
    type: 'server_error',
    message: 'The state that the replicas of this service share cannot be reached.',
    headers: { 'retry-after': '1', 'retry-after-ms': '1000' },
  });

export const pluginFailed = (): GatewayError =>
  new GatewayError({
    status: 500,
    code: 'plugin_failed',
    type: 'server_error',
    message: 'A plugin of this service failed on this request.',
  });

export const internalError = (): GatewayError =>
  new GatewayError({
    status: 500,
    code: 'internal_error',
    type: 'server_error',
    message: 'The service failed on this request.',
  });

/** Where the provider's own words cannot be passed on. */
export const upstreamRefused = (status: number): GatewayError =>
  new GatewayError({
    status,
    code: 'upstream_refused',
    type: 'upstream_error',
    message: 'The provider refused the request.',
  });

export const upstreamErrorTooLarge = (status: number): GatewayError =>
  new GatewayError({
    status,
    code: 'upstream_error_too_large',
    type: 'upstream_error',
    message: 'The provider refused the request with an answer too large to pass on.',
  });

export const upstreamErrorUnreadable = (status: number): GatewayError =>
  new GatewayError({
    status,
    code: 'upstream_error_unreadable',
    type: 'upstream_error',
    message: 'The provider refused the request with an answer in a content coding that cannot be read.',
  });

export type Refusal = 'busy' | 'cooling' | 'failed' | 'quota';

const RETRY_AFTER_MS_LIMIT = 60_000;

/**
 * The 503s where no upstream is left, and the 429 for quotas. `retryMs` is the time until the first upstream is back; Infinity =
 * none comes back by itself.
 */
export function allUpstreams(refusal: Refusal, retryMs: number, attempts: readonly object[]): GatewayError {
  if (refusal === 'quota')
    return quotaExhausted('all upstreams have used up their quotas', retryMs, { attempts });
  const seconds = secondsOf(retryMs);
  const message =
    refusal === 'cooling' && retryMs !== Infinity
      ? `all upstreams cooling, retry in ${seconds}s`
      : `all upstreams ${refusal}`;
  return new GatewayError({
    status: 503,
    code: `all_upstreams_${refusal}`,
    type: 'server_error',
    message,
    extra: { attempts },
    headers: retryHeaders(retryMs),
  });
}

/** The time that its model gives a request was over before an upstream was asked. */
export const deadlineOver = (deadlineMs: number, attempts: readonly object[]): GatewayError =>
  new GatewayError({
    status: 503,
    code: 'deadline_exceeded',
    type: 'server_error',
    message: `the deadline of ${Math.round(deadlineMs)}ms is over`,
    extra: { attempts },
    headers: retryHeaders(1000),
  });

/** No key of any candidate can be used, and none will be by itself. */
export const noUsableKey = (attempts: readonly object[]): GatewayError =>
  new GatewayError({
    status: 503,
    code: 'no_usable_key',
    type: 'server_error',
    message: 'no usable key: all keys of the upstreams of this model are disabled or expired',
    extra: { attempts },
    headers: retryHeaders(Infinity),
  });

/** `what` is used up until `retryMs` have passed. */
export function quotaExhausted(
  what: string,
  retryMs: number,
  extra: Record<string, unknown> = {},
): GatewayError {
  return new GatewayError({
    status: 429,
    code: 'quota_exhausted',
    type: 'rate_limit_error',
    message: `${what}, retry in ${secondsOf(retryMs)}s`,
    extra,
    headers: retryHeaders(retryMs),
  });
}

function secondsOf(retryMs: number): number {
  return Math.max(1, Math.ceil(retryMs / 1000));
}

export type QueueRefusal = 'queue_full' | 'queue_timeout';

/** There is no place to wait, or the wait was in vain. `retryMs` is when a place or a slot may be free. */
export const queueRefused = (
  refusal: QueueRefusal,
  retryMs: number,
  attempts: readonly object[],
  message = 'all upstreams busy',
): GatewayError =>
  new GatewayError({
    status: 503,
    code: refusal,
    type: 'server_error',
    message,
    extra: { attempts },
    headers: retryHeaders(retryMs),
  });

/**
 * When a client may come again: true seconds, and milliseconds up to what official SDKs heed; they retry of their own
 * accord unless told that it is of no use (`x-should-retry`).
 */
function retryHeaders(retryMs: number): Readonly<Record<string, string>> {
  const hopeless: Record<string, string> =
    retryMs > RETRY_AFTER_MS_LIMIT ? { 'x-should-retry': 'false' } : {};
  if (retryMs === Infinity) return hopeless;
  return {
    'retry-after': String(secondsOf(retryMs)),
    'retry-after-ms': String(Math.max(1, Math.min(RETRY_AFTER_MS_LIMIT, Math.ceil(retryMs)))),
    ...hopeless,
  };
}

/** What says in band that a stream of chat completions broke. */
export const STREAM_INTERRUPTED = streamInterrupted('upstream');
