import { Module } from '@nestjs/common';
import { monotonicClock } from '../common/time/clock.js';
import { CLOCK } from '../contracts/ports.js';
import { BackoffService } from './backoff/backoff.service.js';
import { ConcurrencyService } from './concurrency/concurrency.service.js';
import { UpstreamRegistry } from './upstream.registry.js';

@Module({
  providers: [
    { provide: CLOCK, useValue: monotonicClock },
    BackoffService,
    ConcurrencyService,
    UpstreamRegistry,
  ],
  exports: [CLOCK, BackoffService, ConcurrencyService, UpstreamRegistry],
})
export class UpstreamsModule {}
