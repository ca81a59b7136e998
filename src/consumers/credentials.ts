import type { IncomingHttpHeaders } from 'node:http';
import { withoutBlanks } from '../common/http/header-syntax.js';

/** The key a request shows; null = none, {@link REFUSED} = more than one in one header. */
export type PresentedKey = string | null | typeof REFUSED;

export const REFUSED: unique symbol = Symbol('refused');
/** In the order in which they are looked at, after `Authorization`. */
const KEY_HEADERS = ['x-api-key', 'api-key', 'x-goog-api-key'] as const;
const BEARER = 'bearer ';

/**
 * The first header with a key in it decides, there is no second try: `Authorization: Bearer`, `x-api-key`, `api-key`,
 * `x-goog-api-key`. Another scheme counts as no header.
 */
export function presentedKey(headers: IncomingHttpHeaders, rawHeaders: readonly string[]): PresentedKey {
  const bearer = bearerToken(headers, rawHeaders);
  if (bearer !== null) return bearer;
  for (const name of KEY_HEADERS) {
    const value = headers[name];
    // Node joins what was repeated with a comma; a list is no key either.
    if (typeof value !== 'string') continue;
    const key = withoutBlanks(value);
    if (key !== '') return key.includes(',') ? REFUSED : key;
  }
  return null;
}

/** As {@link presentedKey}, of the `Authorization` header alone. */
export function bearerToken(headers: IncomingHttpHeaders, rawHeaders: readonly string[]): PresentedKey {
  const { authorization } = headers;
  if (authorization === undefined) return null;
  // Trap: of a repeated Authorization Node keeps the first and drops the rest without a word.
  if (isRepeated(rawHeaders)) return REFUSED;
  if (authorization.slice(0, BEARER.length).toLowerCase() !== BEARER) return null;
  const token = withoutBlanks(authorization.slice(BEARER.length));
  if (token === '') return null;
  return token.includes(',') ? REFUSED : token;
}

function isRepeated(rawHeaders: readonly string[]): boolean {
  let seen = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === 13 && name.toLowerCase() === 'authorization') seen++;
  }
  return seen > 1;
}
