import { notText, type Rule } from './rule.js';
import { urlWithPassword } from './url-rule.js';

/** What `proxy` says for "none, whatever the environment says". */
export const NO_PROXY_WORD = 'none';

const WANTED = 'write it like "http://proxy.example:3128"';
const OFF = 'write "none" for a direct connection';
const WORDS_FOR_OFF = new Set(['off', 'no', 'false', 'direct', 'null', '~']);

/** What is wrong with the url of a forward proxy, without a word of it: it may hold a password. Null = nothing. */
export function proxyUrlProblem(text: string): string | null {
  const written = text.trim();
  if (/[\p{Cc}\s\\]/u.test(written)) return `holds a space, a backslash or a control character; ${WANTED}`;
  const scheme = /^([a-z][a-z0-9+.-]{0,15}):\/\//i.exec(written)?.[1]?.toLowerCase();
  if (scheme === undefined) return `is not an absolute url; ${WANTED}`;
  if (scheme.startsWith('socks'))
    return `SOCKS proxies are not supported (${scheme}); ${WANTED}, with an HTTP proxy`;
  if (scheme !== 'http' && scheme !== 'https') return `the scheme must be http or https, not ${scheme}`;
  const url = URL.parse(written);
  if (url === null || url.hostname === '')
    return `has no valid host and port; ${WANTED}; in a user name or password, percent-encode characters such as "/", "#", "?" and "@"`;
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '')
    return `must be scheme, host and port only; ${WANTED}; in a user name or password, percent-encode characters such as "/", "#", "?" and "@"`;
  return userInfoProblem(url);
}

function userInfoProblem(url: URL): string | null {
  try {
    const user = decodeURIComponent(url.username);
    decodeURIComponent(url.password);
    return user.includes(':') ? 'the user name holds a ":", which Basic authentication cannot carry' : null;
  } catch {
    return 'the user name or password holds a "%" that begins no percent-encoded character; write "%25" for "%"';
  }
}

/** The proxy of a provider. It is substituted and may hold a password, so no message shows it. */
export const proxy: Rule = urlWithPassword(
  'proxy',
  { type: 'string', pattern: '^(none$|https?://|\\$\\{)' },
  (value) => {
    if (value === false) return OFF;
    if (typeof value !== 'string') return notText(value);
    const written = value.trim();
    if (written === NO_PROXY_WORD) return null;
    if (written === '') return `is empty; ${OFF}, or remove the key`;
    if (WORDS_FOR_OFF.has(written.toLowerCase())) return OFF;
    return proxyUrlProblem(written);
  },
);
