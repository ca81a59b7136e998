import type { ErrorClass } from '../../contracts/error-class.js';

/** How one class is recognised. All words are in lower case. */
export interface ErrorWords {
  /** Whole values of `code`, `type` and their relatives. */
  readonly codes?: readonly string[];
  /** Values that only repeat the status: the message may say more. */
  readonly vagueCodes?: readonly string[];
  /** Beginnings of such values. */
  readonly codePrefixes?: readonly string[];
  /** Phrases in the message: a text, or an expression that is linear on any input. */
  readonly messages?: readonly (string | RegExp)[];
  readonly statuses?: readonly number[];
}

/**
 * What providers call their errors: OpenAI, Azure OpenAI, Anthropic, Gemini, Bedrock, OpenRouter, DeepSeek, Groq,
 * Mistral, xAI, Moonshot, DashScope, GitHub Models, vLLM, llama.cpp, Ollama. Only words that decide by themselves stand
 * here: `invalid_request_error` or `api_error` are used for everything and say nothing.
 * The order of the classes is the order in which messages are looked through.
 */
export const ERROR_VOCABULARY: Readonly<Record<ErrorClass, ErrorWords>> = {
  quota_exhausted: {
    statuses: [402],
    codes: [
      'insufficient_quota',
      'insufficientquota',
      'enforced_spend_limit_reached',
      'organization_usage_limit_exceeded',
      'organization_spend_limit_exceeded',
      'project_spend_limit_exceeded',
      'credit_balance_exhausted',
      'billing_not_active',
      'billing_error',
      'payment_required',
      'insufficient_balance',
      'insufficient_credits',
      'insufficient_funds',
      'quota_exceeded',
      'exceeded_current_quota_error',
      'arrearage',
      'servicequotaexceededexception',
    ],
    codePrefixes: ['billing_hard_limit'],
    messages: [
      /\binsufficient (?:account )?(?:balance|credit|funds|quota)/,
      'credit balance is too low',
      'exceeded your current quota',
      'billing hard limit has been reached',
      /you have reached your specified (?:workspace )?api usage limits/,
      'used all available credits',
    ],
  },
  context_length: {
    codes: [
      'context_length_exceeded',
      'exceed_context_size_error',
      'context_window_exceeded',
      'model_max_prompt_tokens_exceeded',
      'tokens_limit_reached',
    ],
    messages: [
      'maximum context length',
      'prompt is too long',
      'exceeds the context window',
      'exceed context window of',
      'exceeds the available context size',
      'input is too long for requested model',
      /input token count .{0,60}exceeds the maximum/,
      'number of input tokens exceeds maximum length',
      'maximum prompt length is',
      "longer than the model's context length",
      'greater than the context length',
      "model's context length is only",
      'longer than the maximum model length',
      'exceed context limit',
    ],
  },
  rate_limited: {
    statuses: [429],
    codes: ['slow_down', 'too_many_requests', 'toomanyrequests', 'toomanyrequestsexception'],
    codePrefixes: ['rate_limit', 'ratelimit', 'throttling'],
  },
  unauthorized: {
    statuses: [401, 403],
    codes: [
      'invalid_api_key',
      'incorrect_api_key',
      'api_key_invalid',
      'api_key_expired',
      'invalidapikey',
      'invalid_authentication_error',
      'authentication_error',
      'authentication',
      'unauthenticated',
      'unauthorized',
      'account_deactivated',
      'accessdeniedexception',
      'unrecognizedclientexception',
      'expiredtokenexception',
    ],
    vagueCodes: ['permission_error', 'permission_denied'],
    messages: [
      'incorrect api key provided',
      /api key (?:not valid|expired)/,
      'this organization has been disabled',
    ],
  },
  model_gone: {
    statuses: [404],
    codes: [
      'model_not_found',
      'modelnotfound',
      'deploymentnotfound',
      'model_decommissioned',
      'model_not_exist',
      'invalid_model',
    ],
    vagueCodes: ['not_found_error', 'resourcenotfoundexception', 'resource_not_found_error'],
    messages: ['model not exist'],
  },
  busy: {
    statuses: [408, 425],
    codes: ['capacity_exceeded', 'modelnotreadyexception', 'modeltimeoutexception'],
    // Of one request, which asks for more than is left: others go on. And of what the settings of an account or of a request leave.
    messages: [
      /requires more credits, or fewer max_tokens\b.{0,200}\bcan only afford \d{3}/s,
      /^prompt tokens limit exceeded/,
      /^no endpoints found matching your data policy/,
      'prohibited due to a violation of provider terms of service',
    ],
  },
  server_error: {
    // Not `server_error` and the like: they only repeat the status, and the message may say more.
    codes: [
      'internalserverexception',
      'server_is_overloaded',
      'service_unavailable_error',
      'service_unavailable',
      'serviceunavailableexception',
      'overloaded',
      'overloaded_error',
      'provider_overloaded',
      'provider_unavailable',
      'modelerrorexception',
      'modelstreamerrorexception',
    ],
    codePrefixes: ['engine_overloaded'],
  },
  bad_request: {
    // A prompt that a filter refused says nothing about the key, whatever status it comes with; nor does what a request
    // names beside its model say anything about the model.
    codes: [
      'content_filter',
      'content_policy_violation',
      'image_content_policy_violation',
      'invalid_prompt',
      'invalid_image',
      'invalid_image_format',
      'invalid_image_mode',
      'invalid_image_url',
      'invalid_base64_image',
      'image_too_large',
      'image_too_small',
      'image_parse_error',
      'image_file_too_large',
      'image_file_not_found',
      'unsupported_image_media_type',
      'empty_image_file',
      'failed_to_download_image',
      'external_connector_error',
      'invalid_value',
      'invalid_type',
      'unsupported_value',
      'unsupported_parameter',
      'unknown_parameter',
      'missing_required_parameter',
      'moderation_blocked',
      'request_too_large',
      'previous_response_not_found',
      'conversation_not_found',
      'file_not_found',
      'vector_store_not_found',
      'container_not_found',
      'container_expired',
      'item_not_found',
    ],
    // Trap: llama.cpp says "File Not Found" of a wrong path, so there must be a name with it.
    messages: [
      /^(?:the )?(?:file|vector store|container|(?:previous )?response|conversation|item|prompt|skill)s? with ids? .{1,300}(?:not found|does not exist|expired)/,
      /^(?:file|vector store|container|(?:previous )?response|conversation|item|prompt|skill)s? not found: [^ /]/,
      /^no such (?:file(?! or directory)|vector ?store|container|response|conversation|item|prompt|skill)/,
      /^container (?:is|has) expired/,
      /^no (?:file|vector store|container|response|conversation|item|prompt|skill)s? found with id/,
      /^(?:you do not|you don't|does not) have (?:access|permission)s? to (?:access |use |read )?(?:the |this )?(?:file|vector store|container|response|conversation|prompt|skill)\b/,
      /^no endpoints found that (?:support|can handle)/,
      /^all providers have been ignored/,
      /^content violates usage guidelines/,
      /^cachedcontent not found/,
      /supported in v1\/[^ ]{1,40} and not in v1\//,
      'no allowed providers are available',
      /not supported in the v1\/[^ ]{1,40} endpoint/,
    ],
  },
};
