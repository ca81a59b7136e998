import type { UpstreamRequest } from '../upstreams/upstream-call.js';
import type { ModelForm } from '../common/multipart/model-form.js';
import type { CompiledTarget } from './compiled-target.js';
import type { GatewayAttempt } from './gateway-attempt.js';

export interface ClientPart {
  /** Flat list of lower-case names and values. */
  readonly passedHeaders: readonly string[];
  readonly contentType: string;
  readonly query: string;
  /** A form instead of JSON; null for most. */
  readonly form: ModelForm | null;
}

/** The request of one attempt: the client's headers, then those of the attempt, then ours, then the fixed ones. */
export function upstreamRequest(
  target: CompiledTarget,
  attempt: GatewayAttempt,
  client: ClientPart,
): UpstreamRequest {
  const { fixedHeaderNames, replacedHeaderNames } = target;
  const headers: string[] = [];
  const { passedHeaders } = client;
  const { setHeaders } = attempt;
  for (let i = 0; i < passedHeaders.length; i += 2) {
    const name = passedHeaders[i] as string;
    if (replacedHeaderNames.has(name) || setHeaders?.has(name)) continue;
    headers.push(name, passedHeaders[i + 1] as string);
  }
  if (!fixedHeaderNames.has('content-type')) headers.push('content-type', client.contentType);
  if (setHeaders !== null) {
    for (const [name, value] of setHeaders) if (!fixedHeaderNames.has(name)) headers.push(name, value);
  }
  if (target.defaultHeaders !== null) addMissing(headers, target.defaultHeaders);
  headers.push(...target.ownHeaders, ...target.fixedHeaders);
  const path = target.path + client.query;
  if (client.form !== null) {
    const body = client.form.withModel(target.candidate.upstream.config.model);
    const bodyBytes = body.reduce((sum, part) => sum + part.length, 0);
    headers.push('content-length', String(bodyBytes));
    return { method: 'POST', path, headers, body, bodyBytes };
  }
  const { body } = attempt;
  const bodyBytes = body.byteLength;
  headers.push('content-length', String(bodyBytes));
  return { method: 'POST', path, headers, body: body.parts(), bodyBytes };
}

function addMissing(headers: string[], wanted: readonly (readonly [string, string])[]): void {
  for (const [name, value] of wanted) {
    let sent = false;
    for (let i = 0; i < headers.length && !sent; i += 2) sent = headers[i] === name;
    if (!sent) headers.push(name, value);
  }
}

/** A request without a body: key and fixed headers. No stage sees it, since there is nothing to shape. */
export function getProbeRequest({ ownHeaders, fixedHeaders }: CompiledTarget, path: string): UpstreamRequest {
  return { method: 'GET', path, headers: [...ownHeaders, ...fixedHeaders], body: null, bodyBytes: 0 };
}
