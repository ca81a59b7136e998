import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { endToEndHeaders } from '../common/http/request-headers.js';
import { GatewayExchange } from '../gateway/gateway-exchange.js';
import { GatewayService } from '../gateway/gateway.service.js';
import { GatewayLog } from '../observability/log/gateway-log.js';
import { GatewayMetrics } from '../observability/metrics/gateway.metrics.js';
import { rejectionReasonOf } from '../observability/metrics/rejection-reason.js';
import type { BodyResult } from './body-reader.js';
import { edgeContext } from './edge-context.js';
import { sendError } from './error-response.js';
import { HttpResponseSink } from './http-response-sink.js';

/** From an HTTP request with its body to an exchange of the gateway. Never throws: the reply is its own. */
@Injectable()
export class ChatService {
  constructor(
    private readonly gateway: GatewayService,
    private readonly metrics: GatewayMetrics,
    private readonly log: GatewayLog,
  ) {}

  complete(request: FastifyRequest, reply: FastifyReply): void {
    reply.hijack();
    const { raw } = request;
    const context = edgeContext(raw);
    const body = request.body as BodyResult;
    if ('error' in body) {
      const { error } = body;
      const reason = rejectionReasonOf(error);
      if (reason !== null) this.metrics.rejected('', reason);
      this.log.rejected(context.requestId, '', error.status, error.code);
      sendError(reply.raw, error, context.headers);
      return;
    }
    const exchange = new GatewayExchange({
      id: context.requestId,
      headers: raw.headers,
      passedHeaders: endToEndHeaders(raw.rawHeaders, raw.headers.connection),
      contentType: raw.headers['content-type'] ?? 'application/json',
      query: context.query,
      body: body.document,
      startedAt: context.startedAt,
    });
    const { presence } = context;
    if (presence === null || presence.left) return;
    // Not assigned as a literal: see the trap in AttemptRun.
    const left = () => exchange.giveUp('client_gone');
    presence.onLeft = left;
    void this.gateway.handle(exchange, new HttpResponseSink(reply.raw, context.headers));
  }
}
