// The configuration under load: limits of 1, 4 and none, think tags, a session header, short rests with probes.

/** By id. The path of a provider's url names its upstream, so the head of a request tells which limit it counts to. */
export const UPSTREAMS = {
  one: { limit: 1 },
  four: { limit: 4 },
  wide: { limit: Infinity },
  think: { limit: 4, extra: 'think_tags: split' },
  session: { limit: 4, extra: 'session_header: x-soak-session' },
  zip: { limit: 4, extra: 'think_tags: split' },
};

export const MODELS = {
  solo: ['one'],
  chain: ['one', 'four', 'wide'],
  quad: ['four', 'wide'],
  thinking: ['think', 'one', 'wide'],
  talk: ['session', 'think', 'four'],
  coded: ['zip', 'wide'],
  all: ['one', 'zip', 'session', 'think', 'four', 'wide'],
};

export const KEY = 'sk-soak-0123456789-abcdef';

export function configurationText(providerPort) {
  const lines = [
    'server: { host: 127.0.0.1, port: 0, request_timeout: PT3S, shutdown_grace: PT5S, body_limit: 2MiB }',
    'providers:',
  ];
  for (const [id, { limit, extra }] of Object.entries(UPSTREAMS)) {
    lines.push(
      `  - id: p-${id}`,
      `    url: "http://127.0.0.1:${providerPort}/${id}/v1"`,
      `    key: "${KEY}"`,
    );
    lines.push(`    max_concurrency: ${limit === Infinity ? 0 : limit}`);
    lines.push('    backoff: PT0.15S', '    probe_interval: PT0.04S', '    first_byte_timeout: PT0.4S');
    if (extra !== undefined) lines.push(`    ${extra}`);
  }
  lines.push('upstreams:');
  for (const id of Object.keys(UPSTREAMS))
    lines.push(`  - { id: ${id}, provider: p-${id}, model: real-${id} }`);
  lines.push('models:');
  for (const [name, upstreams] of Object.entries(MODELS)) {
    lines.push(`  - { name: ${name}, upstreams: [${upstreams.join(', ')}] }`);
  }
  return `${lines.join('\n')}\n`;
}
