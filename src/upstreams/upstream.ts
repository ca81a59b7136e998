import type { UpstreamConfig } from '../config/gateway-config.js';
import type { SlotKeeper } from './shared/slot-keeper.js';
import type { Backoff } from './backoff/backoff.js';
import { Recovery } from './backoff/recovery.js';
import type { Seat } from './concurrency/seat.js';
import { SlotPool } from './concurrency/slot-pool.js';
import type { UpstreamKeys } from './keys/upstream-keys.js';
import { FirstByteAverage } from './first-byte-average.js';
import type { ProviderClient } from './provider-client.js';

/** Others who use the same upstream. */
export interface UpstreamPeers {
  /** It does not know its model, for that long; 0 = it does again. */
  gone(upstream: Upstream, ms: number): void;
}

/** Its load as the log of a refusal shows it: `1/4`, with a group `0/1 gpu0=1/1`. */
export function shownSlots({ seat, slots }: Upstream): string {
  return String(seat ?? slots);
}

/**
 * A real model at a provider with all that changes about it: slots, backoff. Lives from the load of the
 * configuration to the end; never knows who asks for it.
 */
export class Upstream {
  readonly id: string;
  readonly slots: SlotPool;
  #goneUntil = 0;
  readonly firstByte = new FirstByteAverage();
  /** How requests may try it while it rests; null = not at all. */
  readonly recovery: Recovery | null;
  /** Null where its own slots are all that counts. */
  seat: Seat | null = null;
  /** Null where no other replica uses it. */
  keeper: SlotKeeper | null = null;
  /** Likewise. */
  peers: UpstreamPeers | null = null;

  constructor(
    readonly config: UpstreamConfig,
    readonly client: ProviderClient,
    /** Own or shared counter; null = never rests. */
    readonly backoff: Backoff | null,
    /** The provider's pool; null = its single key, or none. */
    readonly keys: UpstreamKeys | null = null,
  ) {
    this.id = config.id;
    this.slots = new SlotPool(config.limit);
    this.recovery = Recovery.of(config, backoff);
  }

  /** Time until its rest ends; 0 = alive. */
  restingMs(now: number): number {
    const backoffMs = this.backoff === null ? 0 : this.backoff.restingMs(now);
    return this.#goneUntil > now ? Math.max(backoffMs, this.#goneUntil - now) : backoffMs;
  }

  /** The provider does not know the model: a rest of this upstream alone, which raises no streak. */
  gone(now: number, ms: number): void {
    this.#goneUntil = Math.max(this.#goneUntil, now + ms);
    this.peers?.gone(this, ms);
  }

  /** What others found; 0 = it is back. */
  heardGone(now: number, ms: number): void {
    this.#goneUntil = ms === 0 ? 0 : Math.max(this.#goneUntil, now + ms);
  }

  /** An answer came: healthy at once, whatever began before. */
  succeeded(): void {
    this.backoff?.succeeded();
    if (this.#goneUntil === 0) return;
    this.#goneUntil = 0;
    this.peers?.gone(this, 0);
  }

  /** Time until a request may come, if only as a trial; 0 = alive, or a trial may come now. */
  opensMs(now: number): number {
    if (this.recovery === null) return this.restingMs(now);
    return Math.max(this.recovery.opensMs(now), this.#goneUntil - now);
  }

  /** Whether a request may try it now although it rests. A model that is gone is not tried: it does not come back by asking. */
  trialOpen(now: number): boolean {
    return this.recovery !== null && this.#goneUntil <= now && this.recovery.trialOpen(now);
  }

  /** Whether a request might try it now if the place of a trial was this replica's to use. */
  trialDue(now: number): boolean {
    return this.recovery !== null && this.#goneUntil <= now && this.recovery.trialDue(now);
  }
}
