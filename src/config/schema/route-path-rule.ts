import { notText, show, simpleRule, type Rule } from './rule.js';

/** Below these the service answers for itself. */
const RESERVED = ['/admin', '/console', '/metrics', '/healthz', '/readyz'] as const;
/** What follows a route's path; a path that ends in one of them could not be told from an endpoint. */
const ENDPOINT_STARTS = [
  'audio', 'chat', 'completions', 'embeddings', 'images', 'messages', 'models', 'rerank', 'responses',
] as const; // prettier-ignore
/** RFC 3986 §3.3, already encoded: the path is compared with the client's bytes. */
const SEGMENTS = /^(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})+$/;
const LONGEST = 512;

export const routePath: Rule = simpleRule('routePath', { type: 'string', pattern: '^/' }, (value) => {
  if (typeof value !== 'string') return notText(value);
  if (!value.startsWith('/')) return `${show(value)} must begin with "/", for example /v1`;
  if (value.length > LONGEST) return `is longer than ${LONGEST} characters`;
  if (!SEGMENTS.test(value))
    return `${show(value)} holds a character that no path can; it is written as clients send it, percent-encoded`;
  const path = normalRoutePath(value);
  const segments = path.split('/').slice(1);
  if (segments.some(isDotSegment))
    return `${show(value)} holds a "." or ".." segment, which is never answered`;
  const reserved = RESERVED.find((prefix) => path === prefix || path.startsWith(`${prefix}/`));
  if (reserved !== undefined)
    return `${show(value)} lies at or below ${reserved}, which the service needs for itself`;
  const last = segments.at(-1) ?? '';
  return (ENDPOINT_STARTS as readonly string[]).includes(last)
    ? `${show(value)} ends in "${last}", with which an endpoint begins`
    : null;
});

/** Doubled slashes become one, a trailing one goes: `/v1` and `/v1/` are one path. */
export function normalRoutePath(path: string): string {
  return `/${path
    .split('/')
    .filter((segment) => segment !== '')
    .join('/')}`;
}

function isDotSegment(segment: string): boolean {
  const decoded = segment.replace(/%2e/gi, '.');
  return decoded === '.' || decoded === '..';
}
