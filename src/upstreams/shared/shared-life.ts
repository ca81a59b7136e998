import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { Clock } from '../../common/time/clock.js';
import { CLOCK } from '../../contracts/ports.js';
import { SHARED_STATE, type SharedState } from '../../state/shared-state.js';
import { ConcurrencyService } from '../concurrency/concurrency.service.js';
import { SlotRooms } from '../concurrency/slot-rooms.js';
import { KeyPools } from '../keys/key-pools.service.js';
import { UpstreamRegistry } from '../upstream.registry.js';
import { SharedClaims } from './shared-claims.js';
import { SharedKeyRests } from './shared-key-rests.js';
import { SharedRests } from './shared-rests.js';
import { SharedSlots } from './shared-slots.js';

/** Wires upstreams to what replicas share, where they share anything, and opens and closes it with the service. */
@Injectable()
export class SharedLife implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #slots: SharedSlots | null = null;

  constructor(
    @Inject(SHARED_STATE) private readonly state: SharedState | null,
    @Inject(CLOCK) clock: Clock,
    registry: UpstreamRegistry,
    rooms: SlotRooms,
    concurrency: ConcurrencyService,
    keys: KeyPools,
  ) {
    if (state === null) return;
    this.#slots = new SharedSlots(state, clock);
    concurrency.share(new SharedClaims(this.#slots, rooms, registry.all, clock));
    state.join(new SharedRests(state, registry.all, clock));
    const upstreamsOf = (provider: string) =>
      [...registry.all].filter(({ config }) => config.provider.id === provider).map(({ id }) => id);
    state.join(new SharedKeyRests(state, keys.all, upstreamsOf, clock));
  }

  /** Before the service listens: whoever comes finds limits that are known. */
  async onApplicationBootstrap(): Promise<void> {
    await this.state?.open();
  }

  async onApplicationShutdown(): Promise<void> {
    this.#slots?.close();
    await this.state?.close();
  }
}
