import { Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { RoutingModule } from '../routing/routing.module.js';
import { UpstreamsModule } from '../upstreams/upstreams.module.js';
import { ChatController } from './chat.controller.js';
import { ChatService } from './chat.service.js';
import { EdgeService } from './edge.service.js';
import { GatewayExceptionFilter } from './gateway-exception.filter.js';
import { HealthController } from './health.controller.js';
import { ModelsController } from './models.controller.js';
import { OpenRequests } from './open-requests.js';
import { ServiceState } from './service-state.js';

@Module({
  imports: [RoutingModule, UpstreamsModule],
  controllers: [ChatController, ModelsController, HealthController],
  providers: [
    ChatService,
    EdgeService,
    OpenRequests,
    ServiceState,
    { provide: APP_FILTER, useClass: GatewayExceptionFilter },
  ],
  exports: [EdgeService, OpenRequests, ServiceState],
})
export class HttpModule {}
