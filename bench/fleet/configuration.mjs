// One file for all replicas: one slot behind a queue, and an upstream for the latency.

/** `redisPort` null = each process counts for itself. `onError`: what becomes of them while Redis is away. */
export function configurationText({ oneSlot, healthy, redisPort, prefix, onError }) {
  const state =
    redisPort === null
      ? []
      : [
          `state: { store: redis, url: "redis://127.0.0.1:${redisPort}", prefix: "${prefix}", on_error: ${onError} }`,
        ];
  return [
    'server: { host: 127.0.0.1, port: 0, request_timeout: PT1S, shutdown_grace: PT5S }',
    ...state,
    'providers:',
    // Stalls end by these timeouts; no backoff, so that every request reaches the slot.
    line('one', oneSlot, 'max_concurrency: 1, first_byte_timeout: PT0.2S, idle_timeout: PT0.2S'),
    line('healthy', healthy, 'max_concurrency: 1'),
    'upstreams:',
    ...['one', 'healthy'].map((id) => `  - { id: ${id}, provider: p-${id}, model: real-${id} }`),
    'models:',
    // Longer than the 15 s for which nothing is given out after an empty Redis came back.
    '  - { name: one, upstreams: [one], queue: { size: 200, wait: PT25S } }',
    '  - { name: healthy, upstreams: [healthy] }',
    '',
  ].join('\n');
}

const line = (id, port, more) =>
  `  - { id: p-${id}, url: "http://127.0.0.1:${port}/${id}/v1", key: sk-failures-0123456789, ${more} }`;
