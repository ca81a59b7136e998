import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { UpstreamsModule } from '../upstreams/upstreams.module.js';
import { FastestPolicy } from './policies/fastest.policy.js';
import { LeastBusyPolicy } from './policies/least-busy.policy.js';
import { WeightedPolicy } from './policies/weighted.policy.js';
import { PolicyExplorer } from './policy.explorer.js';
import { RoutingService } from './routing.service.js';

/** From names to candidates; the built-in routing policies are found as a plugin's are. */
@Module({
  imports: [DiscoveryModule, UpstreamsModule],
  providers: [RoutingService, PolicyExplorer, WeightedPolicy, LeastBusyPolicy, FastestPolicy],
  exports: [RoutingService, PolicyExplorer],
})
export class RoutingModule {}
