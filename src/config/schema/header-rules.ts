import {
  CREDENTIAL_HEADER,
  HEADER_NAME,
  MADE_BY_US,
  NOT_IN_HEADER_VALUE,
} from '../../common/http/header-syntax.js';
import { shownKey } from '../loader/config-path.js';
import { isPlainObject } from '../loader/plain-object.js';
import { kindOf, notText, show, simpleRule, type Rule, type RuleFinding } from './rule.js';

/** A computed session id in one of these would replace what the provider needs there. */
const NOT_FOR_SESSIONS = new Set([
  'accept',
  'accept-encoding',
  'authorization',
  'content-type',
  'user-agent',
]);

function nameProblem(name: string): string | null {
  if (!HEADER_NAME.test(name))
    return `"${shownKey(name)}" is no valid header name; use letters, digits and "-"`;
  return MADE_BY_US.has(name.toLowerCase())
    ? `the header "${shownKey(name)}" is made by the proxy itself; remove it`
    : null;
}

export const headerName: Rule = simpleRule(
  'headerName',
  { type: 'string', pattern: HEADER_NAME.source },
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
    propertyNames: { pattern: HEADER_NAME.source },
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
  secretsIn: (value) =>
    Object.entries(isPlainObject(value) ? value : {}).flatMap(([name, text]) =>
      typeof text === 'string' && CREDENTIAL_HEADER.test(name.toLowerCase())
        ? [text.replace(/^(Bearer|Basic) +/i, '')]
        : [],
    ),
};

function headerFindings(name: string, value: unknown): string[] {
  const found: string[] = [];
  const problem = nameProblem(name);
  if (problem !== null) found.push(problem);
  if (typeof value !== 'string')
    found.push(value === null ? 'has no value; remove it or write ""' : notText(value));
  else if (/[\r\n]/.test(value)) found.push('the value holds a line feed; a header value is one line');
  else if (NOT_IN_HEADER_VALUE.test(value))
    found.push('the value holds a character that no HTTP header can carry');
  return found;
}
