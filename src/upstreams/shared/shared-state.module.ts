import { Global, Module } from '@nestjs/common';
import { monotonicClock } from '../../common/time/clock.js';
import { ConfigStore } from '../../config/config.store.js';
import { GatewayLog } from '../../observability/log/gateway-log.js';
import { GatewayMetrics } from '../../observability/metrics/gateway.metrics.js';
import { SHARED_STATE, SharedState } from '../../state/shared-state.js';

const LEASE_MS = 15_000;
const PATIENCE_MS = 2000;

/** What replicas share, where they share anything: with `store: memory` not a line of it is loaded. */
@Global()
@Module({
  providers: [
    {
      provide: SHARED_STATE,
      inject: [ConfigStore, GatewayLog, GatewayMetrics],
      useFactory: async (config: ConfigStore, log: GatewayLog, metrics: GatewayMetrics) => {
        const { redis } = config.current.state;
        if (redis === null) return null;
        const { RedisStore } = await import('../../state/redis/redis-store.js');
        const { onError, prefix, timeoutMs, url } = redis;
        const newcomerMs = RedisStore.newcomerMs(timeoutMs);
        const store = new RedisStore({ url, prefix, timeoutMs, leaseMs: LEASE_MS, newcomerMs });
        const state = new SharedState({
          store,
          clock: monotonicClock,
          onError,
          leaseMs: LEASE_MS,
          timeoutMs,
          patienceMs: PATIENCE_MS,
          log: {
            lost: (reason) => log.stateLost(reason, onError),
            back: (afterMs) => log.stateBack(afterMs),
            warned: (trouble) => log.warn(`state: redis: ${trouble}`),
          },
        });
        metrics.shared(() => state.degraded);
        return state;
      },
    },
  ],
  exports: [SHARED_STATE],
})
export class SharedStateModule {}
