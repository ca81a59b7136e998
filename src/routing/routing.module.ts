import { Module } from '@nestjs/common';
import { UpstreamsModule } from '../upstreams/upstreams.module.js';
import { RoutingService } from './routing.service.js';

@Module({
  imports: [UpstreamsModule],
  providers: [RoutingService],
  exports: [RoutingService],
})
export class RoutingModule {}
