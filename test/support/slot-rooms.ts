import { Registry } from 'prom-client';
import type { Clock } from '../../src/common/time/clock.js';
import { ConfigStore } from '../../src/config/config.store.js';
import { loadConfig } from '../../src/config/loader/load-config.js';
import type { GatewayConfig } from '../../src/config/gateway-config.js';
import { GatewayMetrics } from '../../src/observability/metrics/gateway.metrics.js';
import { SlotMetrics } from '../../src/observability/metrics/slot.metrics.js';
import { BackoffService } from '../../src/upstreams/backoff/backoff.service.js';
import { ConcurrencyService } from '../../src/upstreams/concurrency/concurrency.service.js';
import { SlotRooms } from '../../src/upstreams/concurrency/slot-rooms.js';
import type { KeyPools } from '../../src/upstreams/keys/key-pools.service.js';
import { UpstreamRegistry } from '../../src/upstreams/upstream.registry.js';

export function configOf(file: object): GatewayConfig {
  const result = loadConfig({ text: JSON.stringify(file) }, {});
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.config;
}

/** The slots of a configuration, without the service around them. */
export function slotsOf(config: GatewayConfig, clock: Clock) {
  const prometheus = new Registry();
  const metrics = new GatewayMetrics(prometheus, { version: '0', node: '0' }, () => 0);
  const store = new ConfigStore(config);
  const rooms = new SlotRooms(store, new SlotMetrics(prometheus), clock);
  const noKeys = { keysOf: () => null } as unknown as KeyPools;
  const registry = new UpstreamRegistry(store, new BackoffService(), noKeys, rooms, metrics, clock);
  return { metrics, registry, rooms, service: new ConcurrencyService(clock, rooms) };
}

/** Claims on upstreams that share nothing and that nobody waits for. */
export function claimsWith(clock: Clock): ConcurrencyService {
  const file = {
    providers: [{ id: 'p', url: 'http://127.0.0.1:9/v1' }],
    upstreams: [{ id: 'u', provider: 'p', model: 'm' }],
    models: [{ name: 'm', upstreams: ['u'] }],
  };
  return slotsOf(configOf(file), clock).service;
}
