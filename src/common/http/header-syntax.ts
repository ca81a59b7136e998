/** RFC 9110 §5.6.2. */
export const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;
/** RFC 9110 §5.5, and what Node can write: a byte for each character. */
export const NOT_IN_HEADER_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

/** These describe the connection or the body that we make; another value would break the message. */
export const MADE_BY_US: ReadonlySet<string> = new Set([
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

const SPACE = 0x20;
const TAB = 0x09;

/** Without the blanks of HTTP at both ends; `trim` would take more than those, such as a byte 0xA0. */
export function withoutBlanks(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isBlank(value.charCodeAt(start))) start++;
  while (end > start && isBlank(value.charCodeAt(end - 1))) end--;
  return value.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

/** Lower-case names of headers whose values are secrets. */
export const CREDENTIAL_HEADER = /authorization|api-?key|token|secret|cookie|password/;
