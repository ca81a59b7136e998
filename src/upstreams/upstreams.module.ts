import { Module } from '@nestjs/common';
import { monotonicClock, wallClock } from '../common/time/clock.js';
import { CLOCK, WALL_CLOCK } from '../contracts/ports.js';
import { BackoffService } from './backoff/backoff.service.js';
import { ConcurrencyService } from './concurrency/concurrency.service.js';
import { SlotRooms } from './concurrency/slot-rooms.js';
import { KeyPools } from './keys/key-pools.service.js';
import { SharedLife } from './shared/shared-life.js';
import { SharedStateModule } from './shared/shared-state.module.js';
import { UpstreamRegistry } from './upstream.registry.js';

@Module({
  imports: [SharedStateModule],
  providers: [
    { provide: CLOCK, useValue: monotonicClock },
    { provide: WALL_CLOCK, useValue: wallClock },
    BackoffService,
    ConcurrencyService,
    KeyPools,
    SharedLife,
    SlotRooms,
    UpstreamRegistry,
  ],
  exports: [SharedStateModule, CLOCK, WALL_CLOCK, BackoffService, ConcurrencyService, UpstreamRegistry],
})
export class UpstreamsModule {}
