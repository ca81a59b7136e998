import { ConsumersModule } from '../consumers/consumers.module.js';
import { Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { RoutingModule } from '../routing/routing.module.js';
import { UpstreamsModule } from '../upstreams/upstreams.module.js';
import { EdgeService } from './edge.service.js';
import { GatewayExceptionFilter } from './gateway-exception.filter.js';
import { HealthController } from './health.controller.js';
import { ModelsController } from './models.controller.js';
import { OperationController } from './operation.controller.js';
import { OperationService } from './operation.service.js';
import { OpenRequests } from './open-requests.js';
import { Refusals } from './refusals.js';
import { ServiceState } from './service-state.js';

@Module({
  imports: [ConsumersModule, RoutingModule, UpstreamsModule],
  controllers: [OperationController, ModelsController, HealthController],
  providers: [
    EdgeService,
    OpenRequests,
    OperationService,
    Refusals,
    ServiceState,
    { provide: APP_FILTER, useClass: GatewayExceptionFilter },
  ],
  exports: [EdgeService, OpenRequests, ServiceState],
})
export class HttpModule {}
