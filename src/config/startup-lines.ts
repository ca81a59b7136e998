import { formatDuration } from '../common/time/duration.js';
import { printable } from '../common/text/mask.js';
import type { DurationSetting, GatewayConfig } from './gateway-config.js';
import { DEFAULTS } from './loader/build-config.js';

/** More entries than this make a line that nobody reads. */
const MAX_LISTED = 20;

/** What the log says about the configuration at start (spec 01 §9), without the prefix. */
export function startupLines(config: GatewayConfig): string[] {
  const { providers, upstreams, models, server } = config;
  return [
    `config: providers=${providers.length} upstreams=${upstreams.length} models=${models.length}`,
    `upstream: request_timeout=${server.requestTimeoutMs}ms`,
    `backoff: ${settingsOf(config, (entry) => entry.backoff)}`,
    `first_byte_timeout: ${settingsOf(config, (entry) => entry.firstByteTimeout)} default=${formatDuration(DEFAULTS.firstByteTimeoutMs)}`,
    `probe_interval: ${settingsOf(config, (entry) => entry.probeInterval)} default=${formatDuration(DEFAULTS.probeIntervalMs)}`,
  ];
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
  if (configured.length === 0) return '-';
  const shown = configured
    .slice(0, MAX_LISTED)
    .map((entry) => `${printable(entry.id, 100)}=${pick(entry)?.text ?? ''}`);
  const hidden = configured.length - shown.length;
  return shown.join(',') + (hidden > 0 ? `,…(+${hidden})` : '');
}
