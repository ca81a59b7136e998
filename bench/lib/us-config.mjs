// The configuration files of the proxy under test. JSON is YAML, so no library is needed to write them.
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

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

/**
 * The standard file with `count` consumers of five keys each in a file of their own, and the keys of those that ask, spread
 * over all. As in a company, a hundred selectors are shared by all of them.
 */
export function consumers({ upstream, count, asking = 1, keysEach = 5 }) {
  const keyOf = (consumer, key) => `bench-client-key-${String(consumer).padStart(5, '0')}-${key}`;
  const base = standard({ upstream });
  return {
    config: {
      ...base,
      upstreams: base.upstreams.map((entry) => ({ ...entry, labels: { region: 'eu' } })),
      consumers: range(count).map((i) => ({
        id: `team-${i}`,
        labels: { team: `t${i % 50}` },
        select: { models: `sys/model!=hidden-${i % 100}`, upstreams: 'region in (eu, local)' },
        max_concurrency: 1000,
        keys: range(keysEach).map((k) => ({
          id: `key-${k}`,
          sha256: createHash('sha256').update(keyOf(i, k)).digest('hex'),
          labels: { env: k % 2 === 0 ? 'test' : 'prod' },
        })),
      })),
    },
    keys: range(asking).map((i) => keyOf(Math.floor((i * count) / asking), i % keysEach)),
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

/** Consumers go into a file beside it, one a line. */
export function writeConfig(path, { consumers: callers, ...config }, port) {
  const server = { host: '127.0.0.1', port, body_limit: '64MiB' };
  const rest = callers === undefined ? {} : { consumers_file: './consumers.jsonl' };
  if (callers !== undefined) {
    const lines = callers.map((caller) => `${JSON.stringify(caller)}\n`);
    writeFileSync(join(dirname(path), 'consumers.jsonl'), lines.join(''));
  }
  writeFileSync(path, `${JSON.stringify({ server, ...config, ...rest }, null, 2)}\n`);
}

function range(count) {
  return Array.from({ length: count }, (_, i) => i);
}
