import { shownKey } from '../loader/config-path.js';
import { isPlainObject } from '../loader/plain-object.js';
import { kindOf, notText, show, simpleRule, type Rule, type RuleFinding } from './rule.js';

/** RFC 9110 §5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;
/** RFC 9110 §5.5, and what Node can write: a byte for each character. */
const NOT_A_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

/** These describe the connection or the body that we make; another value would break the message. */
const OURS = new Set([
  'connection',
  'content-encoding',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
/** A computed session id in one of these would replace what the provider needs there. */
const NOT_FOR_SESSIONS = new Set([
  'accept',
  'accept-encoding',
  'authorization',
  'content-type',
  'user-agent',
]);

function nameProblem(name: string): string | null {
  if (!TOKEN.test(name)) return `"${shownKey(name)}" is no valid header name; use letters, digits and "-"`;
  return OURS.has(name.toLowerCase())
    ? `the header "${shownKey(name)}" is made by the proxy itself; remove it`
    : null;
}

export const headerName: Rule = simpleRule(
  'headerName',
  { type: 'string', pattern: TOKEN.source },
  (value) => {
    if (typeof value !== 'string') return notText(value);
    const problem = nameProblem(value);
    if (problem !== null) return problem;
    return NOT_FOR_SESSIONS.has(value.toLowerCase())
      ? `the header ${show(value)} cannot carry a session id`
      : null;
  },
);

/** Values may be secrets: no message shows one. */
export const headers: Rule = {
  name: 'headers',
  schema: {
    type: 'object',
    additionalProperties: { type: 'string' },
    propertyNames: { pattern: TOKEN.source },
  },
  check: (value) => {
    if (!isPlainObject(value))
      return [{ at: [], message: `must be a mapping of header names to texts, not ${kindOf(value)}` }];
    const firstOf = new Map<string, string>();
    return Object.keys(value).flatMap((name) => {
      const found = headerFindings(name, value[name]);
      const first = firstOf.get(name.toLowerCase());
      if (first === undefined) firstOf.set(name.toLowerCase(), name);
      else found.push(`is the same header as "${shownKey(first)}"; header names know no case`);
      return found.map((message): RuleFinding => ({ at: [name], message }));
    });
  },
};

function headerFindings(name: string, value: unknown): string[] {
  const found: string[] = [];
  const problem = nameProblem(name);
  if (problem !== null) found.push(problem);
  if (typeof value !== 'string')
    found.push(value === null ? 'has no value; remove it or write ""' : notText(value));
  else if (/[\r\n]/.test(value)) found.push('the value holds a line feed; a header value is one line');
  else if (NOT_A_VALUE.test(value)) found.push('the value holds a character that no HTTP header can carry');
  return found;
}
