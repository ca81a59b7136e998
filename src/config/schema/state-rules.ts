import { notText, show, simpleRule, type Rule } from './rule.js';
import { urlWithPassword } from './url-rule.js';

const WANTED = 'write it like "redis://host:6379" or "rediss://host:6379" (with TLS)';

const ENCODED =
  'in a user or password, also one of ${VAR}, every character but letters, digits and "-._~" is written percent-encoded, such as "%40" for "@"';

/** The url of a Redis. It may hold a password, so no message shows it. */
export const redisUrl: Rule = urlWithPassword(
  'redisUrl',
  { type: 'string', pattern: '^(rediss?://|\\$\\{)' },
  (value) => {
    if (typeof value !== 'string') return notText(value);
    const written = value.trim();
    if (written === '') return `is empty; ${WANTED}`;
    if (!/^rediss?:\/\//i.test(written)) return `the scheme must be redis or rediss; ${WANTED}`;
    const url = /[\p{Cc}\s\\]/u.test(written) ? null : URL.parse(written);
    // What is wrong may be a raw "/" or "#" of the password, which ends the host for whoever reads the url.
    const right = written.includes('@') ? `${WANTED}; ${ENCODED}` : WANTED;
    if (url === null || url.hostname === '') return `is no valid url; ${right}`;
    if (!isDecodable(url.username) || !isDecodable(url.password))
      return 'the user or the password holds a "%" that is no escape; write it as "%25"';
    if (!/^\/?\d{0,4}$/.test(url.pathname))
      return `after the host only the number of a database may follow; ${right}`;
    return url.search === '' && url.hash === '' ? null : `must not have a query or a fragment; ${right}`;
  },
);

/** What all keys begin with. */
export const keyPrefix: Rule = simpleRule(
  'keyPrefix',
  { type: 'string', minLength: 1, maxLength: 100 },
  (value) => {
    if (typeof value !== 'string') return notText(value);
    if (/^[\x21-\x7e]{1,100}$/.test(value)) return null;
    return `must be 1 to 100 printable characters without spaces, such as "llm-proxy:", not ${show(value)}`;
  },
);

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
