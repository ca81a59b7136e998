import { queueRefused, type QueueRefusal } from './catalogue.js';
import { GatewayError } from './gateway-error.js';

/** What a caller is told who may not, or not now. As in the catalogue, codes are part of the API. */

const unauthorized = (code: string, message: string): GatewayError =>
  new GatewayError({
    status: 401,
    code,
    type: 'authentication_error',
    message,
    headers: { 'www-authenticate': 'Bearer' },
  });

export const missingApiKey = (): GatewayError =>
  unauthorized(
    'missing_api_key',
    'This service needs an API key: send "Authorization: Bearer …" or "x-api-key: …".',
  );

export const invalidApiKey = (): GatewayError =>
  unauthorized('invalid_api_key', 'This API key is not known here, or more than one was sent.');

export const apiKeyDisabled = (): GatewayError =>
  unauthorized('api_key_disabled', 'This API key is disabled.');

export const apiKeyExpired = (): GatewayError => unauthorized('api_key_expired', 'This API key has expired.');

export const consumerDisabled = (): GatewayError =>
  unauthorized('consumer_disabled', 'The consumer of this API key is disabled.');

export const invalidMetricsToken = (): GatewayError =>
  unauthorized(
    'invalid_metrics_token',
    'The metrics need "Authorization: Bearer …" with server.metrics_token.',
  );

export const invalidAdminToken = (): GatewayError =>
  unauthorized(
    'invalid_admin_token',
    'An explanation needs "Authorization: Bearer …" with server.admin_token.',
  );

export const routeNotAllowed = (): GatewayError =>
  new GatewayError({
    status: 403,
    code: 'route_not_allowed',
    type: 'permission_error',
    message: 'This API key may not use this path.',
  });

export const unsupportedProtocol = (shownModel: string, endpoint: string): GatewayError =>
  new GatewayError({
    status: 400,
    code: 'unsupported_protocol',
    type: 'invalid_request_error',
    message: `The model "${shownModel}" cannot be used with ${endpoint}: no upstream of it speaks that.`,
    param: 'model',
  });

export const consumerBusy = (limit: number): GatewayError =>
  new GatewayError({
    status: 429,
    code: 'consumer_busy',
    type: 'rate_limit_error',
    message: `${atLimit(limit)}.`,
    headers: { 'retry-after': '1', 'retry-after-ms': '1000' },
  });

/** It would have waited, or did so in vain: for a place of its own, whatever the upstreams do. */
export const consumerQueueRefused = (refusal: QueueRefusal, limit: number): GatewayError => {
  const why = refusal === 'queue_full' ? 'the queue has no place left' : 'none ended in time';
  return queueRefused(refusal, 1000, [], `${atLimit(limit)}, and ${why}.`);
};

function atLimit(limit: number): string {
  return `This consumer already has ${limit} ${limit === 1 ? 'request' : 'requests'} running (max_concurrency)`;
}

export const previousResponseNotFound = (param: string): GatewayError =>
  new GatewayError({
    status: 404,
    code: 'previous_response_not_found',
    type: 'invalid_request_error',
    message: `What "${param}" names was not found.`,
    param,
  });

export const unreadableId = (param: string): GatewayError =>
  new GatewayError({
    status: 400,
    code: 'invalid_id',
    type: 'invalid_request_error',
    message: `An id in "${param}" must be a text.`,
    param,
  });

/** `shownKey`: as the client wrote it. */
export const miscasedKey = (shownKey: string, name: string): GatewayError =>
  new GatewayError({
    status: 400,
    code: 'miscased_key',
    type: 'invalid_request_error',
    message: `The key "${shownKey}" differs from "${name}" only in case, so a provider could take it for that; write "${name}".`,
    param: name,
  });
