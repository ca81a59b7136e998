/**
 * Client headers that never reach a provider: credentials, what belongs to this hop,
 * what tells of the client's network, and what this proxy sets itself.
 */
const DROPPED = new Set([
  'authorization',
  'x-api-key',
  'api-key',
  'x-goog-api-key',
  'cookie',
  'host',
  'content-length',
  'content-type',
  'content-encoding',
  'expect',
  'accept-encoding',
  'forwarded',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

const DROPPED_PREFIXES = ['x-llm-proxy-', 'x-forwarded-', 'proxy-'] as const;

/** Whether a client header passes to providers; `name` in lower case. */
export function passesToProvider(name: string): boolean {
  if (DROPPED.has(name)) return false;
  for (const prefix of DROPPED_PREFIXES) if (name.startsWith(prefix)) return false;
  return true;
}

const ACCOUNT_HEADERS: ReadonlySet<string> = new Set([
  'openai-organization',
  'openai-project',
  'x-goog-user-project',
  'ocp-apim-subscription-key',
  'x-litellm-api-key',
]);

/** Which account of a provider a client means; not for consumers, who share ours. `name` in lower case. */
export function isAccountHeader(name: string): boolean {
  return ACCOUNT_HEADERS.has(name);
}

/** Names listed in a `Connection` header, in lower case; null where there is none beyond the usual. */
export function connectionTokens(value: string | undefined): Set<string> | null {
  if (value === undefined || value === 'keep-alive' || value === 'close') return null;
  const tokens = new Set<string>();
  for (const token of value.split(',')) tokens.add(token.trim().toLowerCase());
  return tokens;
}

/**
 * The client's end-to-end headers as a flat list of lower-case names and values, in their order and number.
 * `rawHeaders` is Node's flat list; `connection` the value of the `Connection` header.
 */
export function endToEndHeaders(
  rawHeaders: readonly string[],
  connection: string | undefined,
  alsoDropped: ((name: string) => boolean) | null = null,
): string[] {
  const named = connectionTokens(connection);
  const passed: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as string).toLowerCase();
    if (!passesToProvider(name) || named?.has(name) || alsoDropped?.(name)) continue;
    passed.push(name, rawHeaders[i + 1] as string);
  }
  return passed;
}
