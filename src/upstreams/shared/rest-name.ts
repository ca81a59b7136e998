import type { UpstreamConfig } from '../../config/gateway-config.js';

/** How replicas call the streak of this upstream, its own or its provider's; null where it has none. */
export function restNameOf({ backoff, id, provider }: UpstreamConfig): string | null {
  if (backoff === null && provider.backoff !== null) return `p:${provider.id}`;
  return backoff === null && provider.errors === null ? null : `u:${id}`;
}
