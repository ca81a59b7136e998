import { Controller, Post, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ChatService } from './chat.service.js';
import { ROUTES } from './endpoint-table.js';

/** POST /v1/chat/completions: the main job. */
@Controller()
export class ChatController {
  constructor(private readonly chat: ChatService) {}

  @Post(ROUTES.chat)
  complete(@Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    this.chat.complete(request, reply);
  }
}
