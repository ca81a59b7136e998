// The configuration files of the proxy under test. JSON is YAML, so no library is needed to write them.
import { writeFileSync } from 'node:fs';

const SLOTS = 20_000;

/** As shipped: three upstreams with slots and backoff, one provider patch, one model patch. */
export function standard({ upstream, think = 'off', sessionHeader = null, requestTimeout = 'PT5M' }) {
  const provider = (id, extra = {}) => ({
    id,
    url: upstream,
    key: `bench-key-of-provider-${id}`,
    max_concurrency: SLOTS,
    backoff: 'P1M',
    request_timeout: requestTimeout,
    think_tags: think,
    ...(sessionHeader === null ? {} : { session_header: sessionHeader }),
    ...extra,
  });
  return {
    providers: [provider('first', { patch: { provider: { sort: 'throughput' } } }), provider('second')],
    upstreams: [
      { id: 'first-a', provider: 'first', model: 'real-model', backoff: 'PT15M' },
      { id: 'first-b', provider: 'first', model: 'real-model-b' },
      { id: 'second-a', provider: 'second', model: 'real-model-c' },
    ],
    models: [
      { name: 'bench-model', upstreams: ['first-a', 'first-b', 'second-a'], patch: { temperature: 0.2 } },
    ],
  };
}

/** The standard file among 2,000 upstreams and 10,000 models; `big-0` … are spread over the whole list. */
export function big({ upstream, providers = 10, upstreams = 2000, models = 10_000 }) {
  const base = standard({ upstream });
  const extra = {
    providers: range(providers).map((i) => ({
      ...base.providers[0],
      id: `p${i}`,
      key: `bench-key-of-provider-${i}`,
    })),
    upstreams: range(upstreams - 3).map((i) => ({
      id: `u${i}`,
      provider: `p${i % providers}`,
      model: 'real-model',
    })),
    models: range(models - 1).map((i) => ({
      name: `big-${i}`,
      upstreams: [0, 1, 2].map((k) => `u${(i + k) % (upstreams - 3)}`),
      patch: { temperature: 0.2 },
    })),
  };
  return {
    providers: [...base.providers, ...extra.providers],
    upstreams: [...base.upstreams, ...extra.upstreams],
    models: [...base.models, ...extra.models],
  };
}

/** Without backoff, so that every request meets the first upstream's 503 again. */
export function failover({ origin }) {
  const provider = (id, mode) => ({
    id,
    url: `${origin}/${mode}/v1`,
    key: `bench-key-of-provider-${id}`,
    max_concurrency: SLOTS,
  });
  return {
    providers: [provider('broken', '503'), provider('sound', 'unary')],
    upstreams: [
      { id: 'broken', provider: 'broken', model: 'real-model' },
      { id: 'sound', provider: 'sound', model: 'real-model' },
    ],
    models: [
      { name: 'bench-plain', upstreams: ['sound', 'broken'] },
      { name: 'bench-failover', upstreams: ['broken', 'sound'] },
    ],
  };
}

export function writeConfig(path, config, port) {
  const server = { host: '127.0.0.1', port, body_limit: '64MiB' };
  writeFileSync(path, `${JSON.stringify({ server, ...config }, null, 2)}\n`);
}

function range(count) {
  return Array.from({ length: count }, (_, i) => i);
}
