import type { GatewayError } from '../../common/errors/gateway-error.js';

/** Label of `llm_proxy_rejected_total`. */
export type RejectionReason =
  | 'busy'
  | 'cooling'
  | 'failed'
  | 'bad_request'
  | 'unknown_model'
  | 'too_large'
  | 'shutting_down'
  | 'no_candidates'
  | 'state'
  | 'no_key'
  | 'quota'
  | 'unauthorized'
  | 'forbidden'
  | 'unsupported_protocol'
  | 'consumer_busy'
  | 'queue_full'
  | 'queue_timeout'
  | 'deadline';

/** A map, since a plugin's refusal may bring any code. */
const BY_CODE: ReadonlyMap<string, RejectionReason> = new Map([
  ['all_upstreams_busy', 'busy'],
  ['all_upstreams_cooling', 'cooling'],
  ['all_upstreams_failed', 'failed'],
  ['model_not_found', 'unknown_model'],
  ['request_too_large', 'too_large'],
  ['shutting_down', 'shutting_down'],
  ['no_candidates', 'no_candidates'],
  ['state_unavailable', 'state'],
  ['no_usable_key', 'no_key'],
  ['quota_exhausted', 'quota'],
  ['missing_api_key', 'unauthorized'],
  ['invalid_api_key', 'unauthorized'],
  ['api_key_disabled', 'unauthorized'],
  ['api_key_expired', 'unauthorized'],
  ['consumer_disabled', 'unauthorized'],
  ['invalid_metrics_token', 'unauthorized'],
  ['invalid_admin_token', 'unauthorized'],
  ['route_not_allowed', 'forbidden'],
  ['unsupported_protocol', 'unsupported_protocol'],
  ['consumer_busy', 'consumer_busy'],
  ['queue_full', 'queue_full'],
  ['queue_timeout', 'queue_timeout'],
  ['deadline_exceeded', 'deadline'],
]);

/** How an error of our own is counted; null for the service's own failures, which are no rejection. */
export function rejectionReasonOf(error: GatewayError): RejectionReason | null {
  return BY_CODE.get(error.code) ?? (error.status < 500 ? 'bad_request' : null);
}
