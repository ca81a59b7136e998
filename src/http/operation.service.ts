import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { endToEndHeaders, isAccountHeader } from '../common/http/request-headers.js';
import { GatewayExchange } from '../gateway/gateway-exchange.js';
import { GatewayService } from '../gateway/gateway.service.js';
import type { BodyResult } from './body-reader.js';
import { edgeContext } from './edge-context.js';
import { HttpResponseSink } from './http-response-sink.js';
import { Refusals } from './refusals.js';

/** From an HTTP request with its body to an exchange of the gateway. Never throws: the reply is its own. */
@Injectable()
export class OperationService {
  constructor(
    private readonly gateway: GatewayService,
    private readonly refusals: Refusals,
  ) {}

  serve(request: FastifyRequest, reply: FastifyReply): void {
    reply.hijack();
    const { raw } = request;
    const context = edgeContext(raw);
    const { caller, resolved } = context;
    const operation = resolved?.endpoint.operation ?? null;
    if (resolved === undefined || operation === null)
      throw new Error('a request without an operation got as far as this');
    const body = request.body as BodyResult;
    if ('error' in body) {
      this.refusals.send(reply.raw, context, body.error);
      return;
    }
    const exchange = new GatewayExchange({
      id: context.requestId,
      headers: raw.headers,
      passedHeaders: endToEndHeaders(
        raw.rawHeaders,
        raw.headers.connection,
        caller === null ? null : isAccountHeader,
      ),
      contentType: raw.headers['content-type'] ?? 'application/json',
      query: context.target.query,
      body: body.document,
      form: body.form,
      operation,
      startedAt: context.startedAt,
      caller,
      explains: context.explains,
      route: resolved.route,
    });
    const { presence } = context;
    if (presence === null || presence.left) return;
    // Not assigned as a literal: see the trap in AttemptRun.
    const left = () => exchange.giveUp('client_gone');
    presence.onLeft = left;
    void this.gateway.handle(exchange, new HttpResponseSink(reply.raw, context));
  }
}
