import { Controller, Post, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ROUTES } from './endpoint-table.js';
import { OperationService } from './operation.service.js';

/** All that clients ask of models: POST /v1/chat/completions, /v1/messages, /v1/embeddings and the others. */
@Controller()
export class OperationController {
  constructor(private readonly operations: OperationService) {}

  @Post(ROUTES.operation)
  serve(@Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    this.operations.serve(request, reply);
  }
}
