import { headerSafeId } from '../common/http/response-headers.js';
import type { Exposure } from '../config/gateway-config.js';
import type { AttemptRecord } from '../contracts/exchange.js';
import type { Candidate } from '../routing/candidate.js';

/** An id inside the trail, whose own signs are encoded too. */
function trailId(id: string): string {
  return headerSafeId(id).replace(/[,=/]/g, encodeURIComponent);
}

/** One step of `x-llm-proxy-trail`, without its status. */
export function trailStep(upstream: string, key: string | null): string {
  return key === null ? trailId(upstream) : `${trailId(upstream)}/${trailId(key)}`;
}

/** The attempts that failed so far, each with its status or, where none came, its result; '' for none. */
export function trailOf(attempts: readonly AttemptRecord[]): string {
  if (attempts.length === 0) return '';
  return attempts
    .map(({ upstream, key, status, result }) => `${trailStep(upstream, key ?? null)}=${status ?? result}`)
    .join(',');
}

/** The head of an answer that was held back, with all attempts that were made by now. */
export function retold(
  headers: readonly string[],
  attempts: readonly AttemptRecord[],
  queueMs: number,
): string[] {
  const told = [...headers];
  for (let i = 0; i < told.length; i += 2) {
    if (told[i] === 'x-llm-proxy-attempts') told[i + 1] = String(attempts.length);
    else if (told[i] === 'x-llm-proxy-trail') told[i + 1] = trailOf(attempts);
    else if (told[i] === 'x-llm-proxy-queue-ms') told[i + 1] = String(queueMs);
  }
  return told;
}

/** The headers of an answer that say who gave it, as a flat list; the same for all answers of a candidate. */
export function targetHeaders({ model, upstream }: Candidate, expose: Exposure): readonly string[] {
  const { config } = upstream;
  const named = model.name === '' ? [] : ['x-llm-proxy-model', headerSafeId(model.name)];
  if (expose === 'none') return named;
  const ids = [
    ...named,
    'x-llm-proxy-upstream',
    headerSafeId(config.id),
    'x-llm-proxy-provider',
    headerSafeId(config.provider.id),
  ];
  return expose === 'full' ? [...ids, 'x-llm-proxy-real-model', headerSafeId(config.model)] : ids;
}
