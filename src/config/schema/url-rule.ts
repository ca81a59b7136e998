import { notText, simpleRule, type Rule } from './rule.js';

const WANTED = 'write it like "https://host/v1"';

/** The base url of a provider. It may have been substituted from the environment, so no message shows it. */
export const url: Rule = simpleRule('url', { type: 'string', pattern: '^(https?://|\\$\\{)' }, (value) => {
  if (typeof value !== 'string') return notText(value);
  const written = value.trim();
  if (written === '') return `is empty; ${WANTED}`;
  if (/[\p{Cc}\s\\]/u.test(written)) return `holds a space, a backslash or a control character; ${WANTED}`;
  const scheme = /^([a-z][a-z0-9+.-]{0,15}):\/\//i.exec(written)?.[1];
  if (scheme === undefined) return `is not an absolute url; ${WANTED}`;
  if (!/^https?$/i.test(scheme)) return `the scheme must be http or https, not ${scheme.toLowerCase()}`;
  const afterScheme = written.slice(scheme.length + 3);
  const authority = afterScheme.split(/[/?#]/, 1)[0] ?? '';
  if (authority.includes('@'))
    return 'must not hold a user name or password before the host; give the secret as "key" or in "headers"';
  if (authority === '' || URL.parse(written) === null) return `has no valid host; ${WANTED}`;
  if (written.includes('?')) return `must not have a query ("?"); ${WANTED}`;
  return written.includes('#') ? `must not have a fragment ("#"); ${WANTED}` : null;
});

/** A rule for a url in which a password may stand. */
export function urlWithPassword(...[name, schema, problem]: Parameters<typeof simpleRule>): Rule {
  return { ...simpleRule(name, schema, problem), secretsIn: passwordOf };
}

/** As it is written, and decoded. Also of a url that is none: there it ends at the last "@". */
function passwordOf(value: unknown): readonly string[] {
  const written = typeof value === 'string' ? /:\/\/[^:@/]*:(.+)@/.exec(value)?.[1] : undefined;
  if (written === undefined) return [];
  const decoded = written.replace(/(%[0-9a-f]{2})+/gi, (escapes) =>
    Buffer.from(escapes.replaceAll('%', ''), 'hex').toString('utf8'),
  );
  return [written, decoded];
}

/** The form in which a valid url is kept: normalised, without trailing slashes. */
export function normalUrl(written: string): string {
  const { origin, pathname } = new URL(written.trim());
  let end = pathname.length;
  while (end > 0 && pathname[end - 1] === '/') end--;
  return origin + pathname.slice(0, end);
}
