import { printable } from '../common/text/mask.js';
import { formatDuration } from '../common/time/duration.js';
import type { GatewayConfig, ModelConfig, UpstreamConfig } from './gateway-config.js';
import { accessOf, networkOf } from './startup-lines.js';
import { formatProblem, type ConfigProblem } from './loader/config-problem.js';

const COLUMNS = [
  'upstream',
  'provider',
  'model',
  'limit',
  'backoff',
  'first byte',
  'first token',
  'idle',
  'probe',
  'recovery',
  'request timeout',
  'think tags',
  'keys',
  'errors',
  'prefill',
] as const;

/** What `--check` prints for a good file: effective values of every upstream, and the chain of every model. No secrets. */
export function checkReport(config: GatewayConfig, warnings: readonly ConfigProblem[]): string {
  const { server, providers, upstreams, models } = config;
  const lines = [
    `config ok: providers=${providers.length} upstreams=${upstreams.length} models=${models.length}${accessOf(config)}`,
    `server: host=${printable(server.host)} port=${server.port} body_limit=${server.bodyLimitBytes} shutdown_grace=${formatDuration(server.shutdownGraceMs)} cors=${server.cors.length === 0 ? 'off' : server.cors.join(',')}`,
    '',
    ...table([[...COLUMNS], ...upstreams.map(rowOf)]),
    '',
    ...table([
      ['model', 'upstreams'],
      ...models.map(({ name, upstreams: chain }) => [cell(name), chainOf(chain)]),
    ]),
  ];
  const network = providers.filter(({ proxy, tls }) => proxy !== null || tls !== null);
  if (network.length > 0) {
    lines.push(
      '',
      ...table([['provider', 'network'], ...network.map((one) => [cell(one.id), networkOf(one)])]),
    );
  }
  const waited = models.filter(({ heartbeat, queue }) => queue !== null || heartbeat !== null);
  if (waited.length > 0)
    lines.push('', ...table([['model', 'queue'], ...waited.map((one) => [cell(one.name), queueOf(one)])]));
  if (warnings.length > 0) lines.push('', ...warnings.map((warning) => `warning: ${formatProblem(warning)}`));
  return `${lines.join('\n')}\n`;
}

function rowOf(upstream: UpstreamConfig): string[] {
  return [
    cell(upstream.id),
    cell(upstream.provider.id),
    cell(upstream.model),
    limitOf(upstream),
    backoffOf(upstream),
    timeOf(upstream.firstByteTimeoutMs, 'off'),
    timeOf(upstream.firstTokenTimeoutMs, 'off'),
    timeOf(upstream.idleTimeoutMs, 'off'),
    probeOf(upstream),
    upstream.recovery,
    timeOf(upstream.requestTimeoutMs, '∞'),
    upstream.thinkTags,
    keysOf(upstream),
    upstream.provider.errors === null ? 'simple' : 'classified',
    upstream.prefill === null ? 'no' : 'yes',
  ];
}

/** With the group whose slots it shares, and the pause between two exchanges. */
function limitOf({ limit, settleMs, slotGroup }: UpstreamConfig): string {
  const own = limit === Infinity ? '∞' : String(limit);
  const shared = slotGroup === null ? '' : ` in ${cell(slotGroup.id)}=${slotGroup.limit}`;
  return `${own}${shared}${settleMs === 0 ? '' : ` settle ${formatDuration(settleMs)}`}`;
}

function queueOf({ heartbeat, queue }: ModelConfig): string {
  const waits = queue === null ? 'none' : `${queue.size} for ${formatDuration(queue.waitMs)}`;
  return heartbeat === null ? waits : `${waits}, heartbeat after ${formatDuration(heartbeat.afterMs)}`;
}

function backoffOf({ backoff, provider }: UpstreamConfig): string {
  if (backoff !== null) return `${backoff.text} (own)`;
  if (provider.backoff !== null) return `${provider.backoff.text} (shared)`;
  return provider.errors === null
    ? 'none'
    : `${formatDuration(provider.errors.serverError.maxMs)} (classified)`;
}

/** How many, never which. */
function keysOf({ provider: { key, keys, keyOrder } }: UpstreamConfig): string {
  const count = keys === null ? Number(key !== '') : keys.filter(({ value }) => value !== '').length;
  return count < 2 ? String(count) : `${count} ${keyOrder}`;
}

function probeOf({ probe, probeIntervalMs, recovery }: UpstreamConfig): string {
  if (recovery === 'half_open' || recovery === 'timer' || probeIntervalMs === 0) return 'off';
  const how = probe.mode === 'get' ? ` GET ${cell(probe.path)}` : '';
  return `${formatDuration(probeIntervalMs)}${how}${probe.wake === 'trial' ? ' → trial' : ''}`;
}

function timeOf(ms: number, zero: string): string {
  return ms === 0 ? zero : formatDuration(ms);
}

function chainOf(chain: readonly UpstreamConfig[]): string {
  return chain.map(({ id }) => cell(id)).join(' → ');
}

function cell(text: string): string {
  return printable(text, 60);
}

function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    rows.reduce((width, row) => Math.max(width, (row[column] ?? '').length), 0),
  );
  return rows.map((row) =>
    row
      .map((text, column) => text.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
