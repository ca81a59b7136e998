import { headerParameters } from './header-parameters.js';

/** The media type of a `Content-Type` without its parameters, in lower case; '' where there is none. */
export function mediaType(contentType: string | undefined): string {
  if (contentType === undefined) return '';
  const semicolon = contentType.indexOf(';');
  return (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase();
}

/**
 * Whether the `Content-Type` of a request calls its bytes something else than UTF-8, or something that two readers could
 * read differently: a reader that believes it could find other text in them than this service, which reads UTF-8. `isHarmless`:
 * other charsets that may be named.
 */
export function saysOtherCharset(contentType: string, isHarmless = isUtf8): boolean {
  // The star begins the extended and the continued parameters of RFC 2231, which some readers honour.
  if (!/charset|\*/i.test(contentType)) return false;
  const parameters = headerParameters(contentType, mediaType(contentType));
  if (parameters === null) return true;
  for (const name of parameters.keys()) if (name.includes('*')) return true;
  const charset = parameters.get('charset');
  return charset !== undefined && !isHarmless(charset);
}

/** ASCII is a part of it. */
export function isUtf8(charset: string): boolean {
  return /^(utf-?8|us-ascii|ascii)$/i.test(charset.trim());
}

/** In it ASCII is written as in UTF-8, and no byte of a longer character is one of ASCII. Some libraries name Latin-1 unasked. */
export function isLikeAscii(charset: string): boolean {
  return isUtf8(charset) || /^(iso-8859-1|latin-?1|windows-1252)$/i.test(charset.trim());
}
