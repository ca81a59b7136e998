import type { AuthStyle, Protocol } from '../config/access-config.js';
import type { UpstreamConfig } from '../config/gateway-config.js';
import type { Operation } from '../contracts/operation.js';

const BY_PROTOCOL: Readonly<Record<Protocol, AuthStyle>> = {
  'chat-completions': 'bearer',
  responses: 'bearer',
  messages: 'x-api-key',
  gemini: 'x-goog-api-key',
  bedrock: 'bearer',
};

/** What a client of Anthropic's API must send, where it says nothing itself. */
const ANTHROPIC_VERSION = ['anthropic-version', '2023-06-01'] as const;

type Header = readonly [name: string, value: string];

/** The header that carries this key to the provider; null where there is none. */
export function authHeader(key: string, upstream: UpstreamConfig, operation: Operation): Header | null {
  if (key === '') return null;
  const protocol = operation.protocol ?? upstream.protocols[0] ?? 'chat-completions';
  const style = upstream.provider.auth ?? BY_PROTOCOL[protocol];
  if (style === 'none') return null;
  return style === 'bearer' ? ['authorization', `Bearer ${key}`] : [style, key];
}

/** Headers that are sent where the client sent none of that name. */
export function defaultHeaders({ protocol }: Operation): readonly Header[] {
  return protocol === 'messages' ? [ANTHROPIC_VERSION] : [];
}
