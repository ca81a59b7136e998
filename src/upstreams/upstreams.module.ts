import { Module } from '@nestjs/common';
import { monotonicClock, wallClock } from '../common/time/clock.js';
import { CLOCK, WALL_CLOCK } from '../contracts/ports.js';
import { BackoffService } from './backoff/backoff.service.js';
import { ConcurrencyService } from './concurrency/concurrency.service.js';
import { SlotRooms } from './concurrency/slot-rooms.js';
import { KeyPools } from './keys/key-pools.service.js';
import { UpstreamRegistry } from './upstream.registry.js';

@Module({
  providers: [
    { provide: CLOCK, useValue: monotonicClock },
    { provide: WALL_CLOCK, useValue: wallClock },
    BackoffService,
    ConcurrencyService,
    KeyPools,
    SlotRooms,
    UpstreamRegistry,
  ],
  exports: [CLOCK, WALL_CLOCK, BackoffService, ConcurrencyService, UpstreamRegistry],
})
export class UpstreamsModule {}
