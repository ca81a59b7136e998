// One service for all measurements; the path of each provider's url names its upstream.

export const PROBE_INTERVAL_MS = 1000;
export const REST_CAP_MS = 8000;

/** `ports`: of the one-slot provider, of the one for continued streams, of the healthy one; `mortals`: id, port, recovery. */
export function configurationText({ oneSlot, prefill, healthy, mortals }) {
  const providers = [
    // Stalls end by these timeouts (of a JSON answer: by request_timeout); no backoff, so that every request reaches the slot.
    line('one', oneSlot, 'max_concurrency: 1, first_byte_timeout: PT0.2S, idle_timeout: PT0.2S'),
    line('a', prefill, 'prefill: true, idle_timeout: PT0.3S'),
    line('b', prefill, 'prefill: true, idle_timeout: PT0.3S'),
    line('healthy', healthy, 'max_concurrency: 4'),
  ];
  for (const { id, port, recovery } of mortals) {
    const rest = `backoff: { base: PT1S, cap: PT${REST_CAP_MS / 1000}S }`;
    providers.push(
      line(id, port, `recovery: ${recovery}, ${rest}, probe_interval: PT${PROBE_INTERVAL_MS / 1000}S`),
    );
  }
  const alone = ['healthy', ...mortals.map(({ id }) => id)];
  return [
    'server: { host: 127.0.0.1, port: 0, request_timeout: PT1S, shutdown_grace: PT5S }',
    'providers:',
    ...providers,
    'upstreams:',
    ...['one', 'a', 'b', ...alone].map((id) => `  - { id: ${id}, provider: p-${id}, model: real-${id} }`),
    'models:',
    '  - { name: one, upstreams: [one], queue: {} }',
    '  - { name: continued, upstreams: [a, b], on_interrupt: continue }',
    ...alone.map((id) => `  - { name: ${id}, upstreams: [${id}] }`),
    '',
  ].join('\n');
}

const line = (id, port, more) =>
  `  - { id: p-${id}, url: "http://127.0.0.1:${port}/${id}/v1", key: sk-failures-0123456789, ${more} }`;
