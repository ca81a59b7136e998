import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { unknownModel } from '../common/errors/catalogue.js';
import { printable } from '../common/text/mask.js';
import { ConsumerRegistry } from '../consumers/consumer.registry.js';
import { RoutingService } from '../routing/routing.service.js';
import type { Sight } from '../routing/sight.js';
import { type EdgeContext, edgeContext } from './edge-context.js';
import { ROUTES } from './endpoint-table.js';
import { sendError } from './error-response.js';
import { sendJson } from './json-response.js';
import { ModelForms } from './model-forms.js';

/** GET …/models and …/models/{id}: what this caller could use under this route, never asked of a provider. */
@Controller()
export class ModelsController {
  readonly #forms = new ModelForms(Date.now() - process.uptime() * 1000);

  constructor(
    private readonly routing: RoutingService,
    private readonly consumers: ConsumerRegistry,
  ) {}

  @Get(ROUTES.models)
  list(@Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    const context = edgeContext(request.raw);
    const names = Array.from(this.routing.visible(this.#sight(context)), ({ name }) => name);
    // By code unit: the order of the file would tell of names that are hidden.
    if (this.consumers.closed) names.sort();
    sendJson(request, reply, this.#forms.list(names, context.form));
  }

  @Get(ROUTES.model)
  one(@Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    const context = edgeContext(request.raw);
    const { modelId = '', verbatimId = '' } = context.resolved ?? {};
    const sight = this.#sight(context);
    const id = [verbatimId, modelId].find((one) => this.routing.named(one, sight) !== undefined);
    if (id === undefined) {
      reply.hijack();
      sendError(reply.raw, unknownModel(printable(modelId)), context);
      return;
    }
    sendJson(request, reply, this.#forms.one(id, context.form));
  }

  #sight({ caller, resolved }: EdgeContext): Sight | null {
    const route = resolved?.route ?? null;
    return route === null ? null : this.routing.sight(route, caller);
  }
}
