import type { UpstreamConfig } from '../config/gateway-config.js';
import type { Backoff } from './backoff/backoff.js';
import { Recovery } from './backoff/recovery.js';
import { SlotPool } from './concurrency/slot-pool.js';
import { FirstByteAverage } from './first-byte-average.js';
import type { ProviderClient } from './provider-client.js';

/**
 * A real model at a provider with all that changes about it: slots, backoff. Lives from the load of the
 * configuration to the end; never knows who asks for it.
 */
export class Upstream {
  readonly id: string;
  readonly slots: SlotPool;
  readonly firstByte = new FirstByteAverage();
  /** How requests may try it while it rests; null = not at all. */
  readonly recovery: Recovery | null;

  constructor(
    readonly config: UpstreamConfig,
    readonly client: ProviderClient,
    /** Own or shared counter; null = never rests. */
    readonly backoff: Backoff | null,
  ) {
    this.id = config.id;
    this.slots = new SlotPool(config.limit);
    this.recovery = Recovery.of(config, backoff);
  }

  /** Time until its rest ends; 0 = alive. */
  restingMs(now: number): number {
    return this.backoff === null ? 0 : this.backoff.restingMs(now);
  }

  /** Time until a request may come, if only as a trial; 0 = alive, or a trial may come now. */
  opensMs(now: number): number {
    return this.recovery === null ? this.restingMs(now) : this.recovery.opensMs(now);
  }
}
