import type { FailedAnswer } from '../../contracts/error-class.js';

/** What a provider's error says about itself, wherever it keeps it. */
export interface ErrorFacts {
  /** `code`, then what stands for it in other dialects, then `type`: in the order in which they count; lower case. */
  readonly identifiers: readonly string[];
  /** A `code` that is an HTTP status; undefined without one. */
  readonly statusCode: number | undefined;
  /** Google's canonical status, such as `permission_denied`. */
  readonly canonicalStatus: string | undefined;
  /** In lower case, cut where it is long. */
  readonly message: string;
  /** Which part of the request it is about; '' where it does not say. */
  readonly param: string;
  /** Google's `RetryInfo`, in ms. */
  readonly retryDelayMs: number | undefined;
}

const MESSAGE_LIMIT = 8192;
const IDENTIFIER_LIMIT = 200;

type Members = Readonly<Record<string, unknown>>;

/** Reads an error body of any of the known dialects. Never throws, whatever the body is. */
export function errorFacts({
  json,
  text,
  header,
}: Pick<FailedAnswer, 'json' | 'text' | 'header'>): ErrorFacts {
  // Gemini's OpenAI endpoint wraps its error in a list.
  const root = members(Array.isArray(json) ? json[0] : json);
  // A stream of `/responses` tells it within the response that failed.
  const error = members(root?.['error']) ?? members(members(root?.['response'])?.['error']) ?? root;
  const details = error?.['details'];
  const metadata = members(error?.['metadata']);
  const code = error?.['code'] ?? root?.['code'];
  const identifiers = [
    code,
    members(details)?.['error_code'],
    ...googleReasons(details),
    metadata?.['error_type'],
    metadata !== undefined && 'flagged_input' in metadata ? 'content_policy_violation' : undefined,
    amazonType(header('x-amzn-errortype') ?? root?.['__type']),
    error?.['type'],
    error === root ? undefined : root?.['type'],
  ];
  const canonical = error?.['status'];
  return {
    identifiers: identifiers.flatMap(identifier),
    statusCode: statusOf(code),
    canonicalStatus: typeof canonical === 'string' ? identifier(canonical)[0] : undefined,
    param: typeof error?.['param'] === 'string' ? error['param'] : '',
    message: messageOf(error, root, json === undefined ? text : ''),
    retryDelayMs: retryDelayMs(details),
  };
}

function members(value: unknown): Members | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Members)
    : undefined;
}

function identifier(value: unknown): string[] {
  if (typeof value !== 'string' || value.length > IDENTIFIER_LIMIT) return [];
  const word = value.trim().toLowerCase();
  return word === '' ? [] : [word];
}

/** 400…599 as a number or as a text: Azure and gateways write `"429"`. */
function statusOf(code: unknown): number | undefined {
  const number = typeof code === 'string' && /^\d{3}$/.test(code) ? Number(code) : code;
  return typeof number === 'number' && Number.isInteger(number) && number >= 400 && number <= 599
    ? number
    : undefined;
}

function messageOf(error: Members | undefined, root: Members | undefined, text: string): string {
  // Ollama's own API, and some gateways, put the text itself into `error`; FastAPI into `detail`.
  const candidates = [error?.['message'], root?.['error'], root?.['message'], root?.['detail'], text];
  const message = candidates.find((candidate) => typeof candidate === 'string' && candidate !== '');
  return typeof message === 'string' ? message.slice(0, MESSAGE_LIMIT).toLowerCase() : '';
}

/** `ThrottlingException:http://…` or `com.amazon.coral#ThrottlingException`. */
function amazonType(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  return value.split(':', 1)[0]?.split('#').at(-1);
}

/**
 * Google's `details`: `ErrorInfo.reason`, and of a `QuotaFailure` whether a limit of a minute or one of a day was hit —
 * the message is "exceeded your current quota" for both.
 */
function googleReasons(details: unknown): string[] {
  if (!Array.isArray(details)) return [];
  const reasons: string[] = [];
  const quotas: string[] = [];
  for (const detail of details.slice(0, 20)) {
    const { reason, violations } = members(detail) ?? {};
    if (typeof reason === 'string') reasons.push(reason);
    if (!Array.isArray(violations)) continue;
    for (const violation of violations.slice(0, 20)) {
      const quota = members(violation)?.['quotaId'];
      if (typeof quota === 'string') quotas.push(quota);
    }
  }
  if (quotas.some((quota) => /PerDay/i.test(quota))) reasons.push('quota_exceeded');
  else if (quotas.some((quota) => /PerMinute/i.test(quota))) reasons.push('rate_limit_exceeded');
  return reasons;
}

function retryDelayMs(details: unknown): number | undefined {
  if (!Array.isArray(details)) return undefined;
  for (const detail of details.slice(0, 20)) {
    const delay = members(detail)?.['retryDelay'];
    const match = typeof delay === 'string' && delay.length < 24 ? /^(\d+(?:\.\d+)?)s$/.exec(delay) : null;
    if (match !== null) return Number(match[1]) * 1000;
  }
  return undefined;
}
