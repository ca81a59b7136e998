import 'reflect-metadata';
import { describe, expect, it } from 'vitest';
import { ManualWallClock } from '../../test/support/manual-wall-clock.js';
import { ConfigStore } from '../config/config.store.js';
import type { GatewayConfig } from '../config/gateway-config.js';
import { loadConfig } from '../config/loader/load-config.js';
import { QuotaRegistry } from './quota.registry.js';
import type { QuotaStore } from './quota.store.js';

const requests = (limit: number) => [{ requests: limit, per: 'P1D' }];

function setUp(file: object) {
  const text = JSON.stringify({
    providers: [
      { id: 'p', url: 'http://h', quota: requests(9) },
      { id: 'q', url: 'http://h' },
    ],
    upstreams: [
      { id: 'a', provider: 'p', model: 'r', quota: requests(5) },
      { id: 'b', provider: 'p', model: 'r' },
      { id: 'c', provider: 'q', model: 'r' },
    ],
    models: [
      { name: 'm', upstreams: [{ upstream: 'a', quota: requests(2) }, 'b', 'c'] },
      { name: 'n', upstreams: ['a'] },
    ],
    ...file,
  });
  const loaded = loadConfig({ text }, {});
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const { config } = loaded;
  const clock = new ManualWallClock();
  const nothing = { usesOf: () => [] } as unknown as QuotaStore;
  const registry = new QuotaRegistry(new ConfigStore(config), nothing, clock.now);
  const left = () =>
    Object.fromEntries(
      [...registry.meters].map(({ scope, id, meter }) => [
        `${scope} ${id.join('/')}`,
        meter.remaining(clock.ms),
      ]),
    );
  return { config, left, registry };
}

function entryOf(config: GatewayConfig, model: string, index: number) {
  const found = config.models.find(({ name }) => name === model);
  const entry = found?.entries[index];
  if (found === undefined || entry === undefined) throw new Error('the test asks for no entry of its file');
  return [found, entry] as const;
}

describe('QuotaRegistry', () => {
  it('has a meter for each quota of the file from the start', () => {
    expect(setUp({}).left()).toEqual({ 'provider p': 9, 'upstream a': 5, 'entry m/a': 2 });
  });

  it('counts a request against entry, upstream and provider, whoever shares them', () => {
    const { config, left, registry } = setUp({});
    const sets = [entryOf(config, 'm', 0), entryOf(config, 'n', 0), entryOf(config, 'm', 1)].map((entry) =>
      registry.gateOf(...entry),
    );
    for (const set of sets) set?.reserve(0);
    expect(left()).toEqual({ 'provider p': 6, 'upstream a': 3, 'entry m/a': 1 });
  });

  it('has none for what no quota counts, and the same one each time', () => {
    const { config, registry } = setUp({});
    expect(registry.gateOf(...entryOf(config, 'm', 2))).toBeNull();
    expect(registry.gateOf(...entryOf(config, 'm', 0))).toBe(registry.gateOf(...entryOf(config, 'm', 0)));
  });

  it('keeps the meters of keys and consumers too, and joins sets', () => {
    const { config, left, registry } = setUp({});
    const quota = [
      { unit: 'requests', limit: 3, per: { text: 'P1D', ms: 86_400_000 }, window: 'calendar' },
    ] as const;
    const key = registry.setOf('key', ['p', 'x'], quota);
    expect(registry.setOf('key', ['p', 'x'], quota)).toBe(key);
    const both = key === null ? null : registry.gateOf(...entryOf(config, 'm', 1))?.and(key);
    both?.reserve(0);
    expect(left()).toMatchObject({ 'provider p': 8, 'key p/x': 2 });
    expect(registry.setOf('consumer', ['c'], [])).toBeNull();
  });
});
