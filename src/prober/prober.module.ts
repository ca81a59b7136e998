import { Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { UpstreamsModule } from '../upstreams/upstreams.module.js';
import { ProberService } from './prober.service.js';

/** Its `PROBE_SENDER` comes from above: the gateway, a global module, provides it. */
@Module({
  imports: [ScheduleModule.forRoot(), UpstreamsModule],
  providers: [ProberService],
})
export class ProberModule {}
