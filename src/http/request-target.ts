import { isHost } from './request-rules.js';

/** A request target in its parts (RFC 9112 §3.2). */
export interface RequestTarget {
  readonly path: string;
  /** With its `?`, or ''. */
  readonly query: string;
  /** False of what no request may have here; it is refused, not repaired. */
  readonly isSound: boolean;
}

const SLASH = 0x2f;
const SCHEMES = ['http://', 'https://'];

export function parseTarget(target: string, method: string | undefined): RequestTarget {
  if (target.charCodeAt(0) === SLASH) return split(target, 0, true);
  // Of the whole server only its options can be asked.
  if (target === '*') return { path: target, query: '', isSound: method === 'OPTIONS' };
  const scheme = SCHEMES.find((each) => target.slice(0, each.length).toLowerCase() === each);
  const start = scheme?.length ?? target.length;
  let end = start;
  while (end < target.length && !'/?#'.includes(target.charAt(end))) end++;
  const authority = target.slice(start, end);
  const isSound = authority !== '' && !authority.startsWith(':') && isHost(authority);
  return split(target, end, isSound);
}

function split(target: string, start: number, isSoundSoFar: boolean): RequestTarget {
  // A fragment is the client's own: none may be sent (RFC 9112 §3.2), and none goes on to a provider.
  const isSound = isSoundSoFar && !target.includes('#');
  const question = target.indexOf('?', start);
  if (question < 0) return { path: target.slice(start), query: '', isSound };
  return { path: target.slice(start, question), query: target.slice(question), isSound };
}
