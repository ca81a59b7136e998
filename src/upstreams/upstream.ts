import type { UpstreamConfig } from '../config/gateway-config.js';
import type { Backoff } from './backoff/backoff.js';
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

  constructor(
    readonly config: UpstreamConfig,
    readonly client: ProviderClient,
    /** Own or shared counter; null = never rests. */
    readonly backoff: Backoff | null,
  ) {
    this.id = config.id;
    this.slots = new SlotPool(config.limit);
  }

  /** Time until it may be tried again; 0 = alive. */
  restingMs(now: number): number {
    return this.backoff === null ? 0 : this.backoff.restingMs(now);
  }
}
