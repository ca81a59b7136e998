import { relayedHeaders, type UpstreamHeaders } from '../common/http/response-headers.js';
import type { Clock } from '../common/time/clock.js';
import type { Attempt } from '../contracts/exchange.js';
import type { CommitOptions } from './answer/answer-reader.js';
import { pushQueueMs } from './queue-standing.js';
import type { CompiledTarget } from './compiled-target.js';
import { trailOf } from './exposure.js';
import type { GatewayExchange } from './gateway-exchange.js';

/** The head of an upstream's answer, as it came. */
export interface AnswerHead {
  readonly status: number;
  readonly headers: UpstreamHeaders;
}

const SSE_OVERRIDDEN: ReadonlySet<string> = new Set(['content-length', 'cache-control', 'x-accel-buffering']);
const LENGTH_OVERRIDDEN: ReadonlySet<string> = new Set(['content-length']);

/** The headers that the client gets with it, as a flat list: the upstream's own that may pass, then ours. */
export function answerHeaders(
  { headers: own, status }: AnswerHead,
  options: CommitOptions,
  target: CompiledTarget,
  { number }: Attempt,
  exchange: GatewayExchange,
  clock: Clock,
): string[] {
  const { attachment, records } = exchange;
  const { kind, contentLength, contentType } = options;
  const ownLength = kind === 'sse' || contentLength !== undefined;
  const headers = relayedHeaders(own, {
    bodyChanged: options.bodyChanged,
    without: ownLength || contentType !== undefined ? overridden(options) : null,
    mask: target.mask,
  });
  if (contentType !== undefined) headers.push('content-type', contentType);
  if (contentLength !== undefined) headers.push('content-length', String(contentLength));
  if (kind === 'sse') headers.push('cache-control', 'no-cache', 'x-accel-buffering', 'no');
  headers.push(...target.answerHeaders);
  if (attachment?.told === true)
    headers.push('x-llm-proxy-affinity', attachment.outcomeOf(target.candidate, target.key?.id ?? null));
  const { trailStep } = target;
  if (trailStep !== null) {
    pushQueueMs(headers, exchange, clock);
    const before = trailOf(records);
    const step = `${trailStep}${status}`;
    headers.push('x-llm-proxy-attempts', String(number));
    headers.push('x-llm-proxy-trail', before === '' ? step : `${before},${step}`);
  }
  return headers;
}

function overridden(options: CommitOptions): ReadonlySet<string> {
  const base = options.kind === 'sse' ? SSE_OVERRIDDEN : LENGTH_OVERRIDDEN;
  return options.contentType === undefined ? base : new Set([...base, 'content-type']);
}
