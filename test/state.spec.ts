import { readdirSync, readFileSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import { TestGateway } from './support/gateway.js';

const loaded = vi.hoisted(() => ({ redis: false }));
vi.mock('@redis/client', () => {
  loaded.redis = true;
  return { createClient: () => ({}) };
});

const root = new URL('../', import.meta.url);

it('the scripts are part of what is built', () => {
  const folder = 'state/redis/lua/';
  const names = readdirSync(new URL(`src/${folder}`, root));
  expect(names.length).toBeGreaterThan(5);
  for (const name of names) {
    const built = readFileSync(new URL(`dist/${folder}${name}`, root), 'utf8');
    expect(built).toBe(readFileSync(new URL(`src/${folder}${name}`, root), 'utf8'));
    expect(built.startsWith('-- ')).toBe(true);
  }
});

it('with store: memory no client of Redis is loaded', async () => {
  const gateway = await TestGateway.start({
    config: {
      providers: [{ id: 'p', url: 'http://127.0.0.1:9/v1' }],
      upstreams: [{ id: 'u', provider: 'p', model: 'real', max_concurrency: 1 }],
      models: [{ name: 'm', upstreams: ['u'] }],
    },
  });
  expect(loaded.redis).toBe(false);
  expect((await gateway.metrics()).find('llm_proxy_state_degraded')).toEqual([]);
  await gateway.close();
});
