import { Module } from '@nestjs/common';
import { monotonicClock } from '../common/time/clock.js';
import { AffinityRegistry } from './affinity.registry.js';
import { SharedAffinity } from './shared-affinity.js';
import { AffinityService } from './affinity.service.js';

/** Which upstream served which conversation: one registry for the life of the process. */
@Module({
  providers: [
    AffinityService,
    SharedAffinity,
    { provide: AffinityRegistry, useFactory: (): AffinityRegistry => new AffinityRegistry(monotonicClock) },
  ],
  exports: [AffinityService],
})
export class AffinityModule {}
