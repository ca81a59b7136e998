import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { unknownModel } from '../common/errors/catalogue.js';
import { printable } from '../common/text/mask.js';
import { RoutingService } from '../routing/routing.service.js';
import { edgeContext } from './edge-context.js';
import { ROUTES } from './endpoint-table.js';
import { sendError } from './error-response.js';
import { sendJson } from './json-response.js';

interface ModelEntry {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: 'llm-proxy';
}

/** GET /v1/models and /v1/models/{id}: the models of the file, never asked of a provider. */
@Controller()
export class ModelsController {
  /** Start of the process, unix seconds. */
  readonly #created = Math.floor(Date.now() / 1000 - process.uptime());

  constructor(private readonly routing: RoutingService) {}

  @Get(ROUTES.models)
  list(@Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    const data = Array.from(this.routing.models, ({ model }) => this.#entry(model.name));
    sendJson(request, reply, { object: 'list', data });
  }

  @Get(ROUTES.model)
  one(@Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    const context = edgeContext(request.raw);
    const id = context.resolved?.modelId ?? '';
    if (this.routing.named(id) === undefined) {
      reply.hijack();
      sendError(reply.raw, unknownModel(printable(id)), context.headers);
      return;
    }
    sendJson(request, reply, this.#entry(id));
  }

  #entry(id: string): ModelEntry {
    return { id, object: 'model', created: this.#created, owned_by: 'llm-proxy' };
  }
}
