import { Controller, Get, Inject, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { SHARED_STATE, type SharedState } from '../state/shared-state.js';
import { ROUTES } from './endpoint-table.js';
import { sendJson } from './json-response.js';
import { ServiceState } from './service-state.js';

/** GET /healthz: alive. GET /readyz: takes new work; 503 while draining, and while nothing is served for want of Redis. */
@Controller()
export class HealthController {
  constructor(
    private readonly state: ServiceState,
    @Inject(SHARED_STATE) private readonly shared: SharedState | null,
  ) {}

  @Get(ROUTES.healthz)
  alive(@Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    sendJson(request, reply, { status: 'ok' });
  }

  @Get(ROUTES.readyz)
  ready(@Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    if (this.state.draining) sendJson(request, reply, { status: 'draining' }, 503);
    else if (this.shared?.rejecting) sendJson(request, reply, { status: 'state_unavailable' }, 503);
    else sendJson(request, reply, { status: 'ready' });
  }
}
