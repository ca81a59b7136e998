import { formatDuration } from '../common/time/duration.js';
import { printable } from '../common/text/mask.js';
import { IMPLICIT_ROUTE } from './access-config.js';
import type { DurationSetting, GatewayConfig, ProviderConfig } from './gateway-config.js';
import { DEFAULTS } from './loader/build-config.js';

/** More entries than this make a line that nobody reads. */
const MAX_LISTED = 20;

/** What the log says about the configuration at start, without the prefix. */
export function startupLines(config: GatewayConfig): string[] {
  const { providers, upstreams, models, server } = config;
  const network = providers.filter(({ proxy, tls }) => proxy !== null || tls !== null);
  return [
    `config: providers=${providers.length} upstreams=${upstreams.length} models=${models.length}${accessOf(config)}`,
    `upstream: request_timeout=${server.requestTimeoutMs}ms`,
    `backoff: ${settingsOf(config, (entry) => entry.backoff)}`,
    `first_byte_timeout: ${settingsOf(config, (entry) => entry.firstByteTimeout)} default=${formatDuration(DEFAULTS.firstByteTimeoutMs)}`,
    `probe_interval: ${settingsOf(config, (entry) => entry.probeInterval)} default=${formatDuration(DEFAULTS.probeIntervalMs)}`,
    ...(network.length === 0 ? [] : [`network: ${shorten(network, networkOf)}`]),
  ];
}

/** Who may call, and where; nothing for an open service with its one route. */
export function accessOf({ consumers, routes }: GatewayConfig): string {
  const keys = consumers?.reduce((sum, consumer) => sum + consumer.keys.length, 0) ?? 0;
  const callers = consumers === null ? '' : ` consumers=${consumers.length} keys=${keys}`;
  return callers + (routes[0] === IMPLICIT_ROUTE ? '' : ` routes=${routes.length}`);
}

/** How a provider is reached, where that is not a plain connection: `via http://…@proxy:3128 (HTTPS_PROXY), tls ca`. */
export function networkOf({ proxy, tls }: ProviderConfig): string {
  const words: string[] = [];
  if (proxy !== null) words.push(`via ${printable(proxy.shown)} (${proxy.source})`);
  const parts = [
    tls?.ca ? 'ca' : '',
    tls?.client ? 'client certificate' : '',
    tls?.servername ? `servername ${printable(tls.servername)}` : '',
  ].filter((part) => part !== '');
  if (parts.length > 0) words.push(`tls ${parts.join(' + ')}`);
  return words.length === 0 ? 'direct' : words.join(', ');
}

interface Configured {
  readonly id: string;
  readonly backoff: DurationSetting | null;
  readonly firstByteTimeout: DurationSetting | null;
  readonly probeInterval: DurationSetting | null;
}

function settingsOf(config: GatewayConfig, pick: (entry: Configured) => DurationSetting | null): string {
  return `upstreams=${listOf(config.upstreams, pick)} providers=${listOf(config.providers, pick)}`;
}

function listOf(entries: readonly Configured[], pick: (entry: Configured) => DurationSetting | null): string {
  const configured = entries.filter((entry) => pick(entry) !== null);
  return configured.length === 0 ? '-' : shorten(configured, (entry) => pick(entry)?.text ?? '');
}

function shorten<T extends { readonly id: string }>(
  entries: readonly T[],
  textOf: (entry: T) => string,
): string {
  const shown = entries.slice(0, MAX_LISTED).map((entry) => `${printable(entry.id, 100)}=${textOf(entry)}`);
  const hidden = entries.length - shown.length;
  return shown.join(',') + (hidden > 0 ? `,…(+${hidden})` : '');
}
