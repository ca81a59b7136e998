import { Inject, Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest, RawRequestDefaultExpression } from 'fastify';
import { shuttingDown, unknownPath, unsupportedMediaType, wrongMethod } from '../common/errors/catalogue.js';
import type { GatewayError } from '../common/errors/gateway-error.js';
import { mediaType } from '../common/http/media-type.js';
import type { Clock } from '../common/time/clock.js';
import { ConfigStore } from '../config/config.store.js';
import { CLOCK } from '../contracts/ports.js';
import { GatewayLog } from '../observability/log/gateway-log.js';
import { rejectionReasonOf } from '../observability/metrics/rejection-reason.js';
import { GatewayMetrics } from '../observability/metrics/gateway.metrics.js';
import { ClientPresence } from './client-presence.js';
import { Cors } from './cors.js';
import { type EdgeContext, edgeContext, setEdgeContext } from './edge-context.js';
import { type Endpoint, resolveEndpoint } from './endpoint-table.js';
import { sendError } from './error-response.js';
import { OpenRequests } from './open-requests.js';
import { requestIdOf } from './request-id.js';
import { ServiceState } from './service-state.js';

/** Nothing listens here: unknown paths never reach the framework's router with a text of the client. */
const NOWHERE = '/-';

/**
 * Sees each request first, before its body is read: where it goes, its id, and whether it may go on. The order of the
 * checks is that of spec 03 §4.
 */
@Injectable()
export class EdgeService {
  readonly #cors: Cors;

  constructor(
    store: ConfigStore,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly state: ServiceState,
    private readonly open: OpenRequests,
    private readonly metrics: GatewayMetrics,
    private readonly log: GatewayLog,
  ) {
    this.#cors = new Cors(store.current.server.cors);
  }

  /** Fastify's `rewriteUrl`: every path a client may use becomes the one its controller listens on. */
  route(request: RawRequestDefaultExpression): string {
    const target = request.url ?? '/';
    const path = pathOf(target);
    const resolved = resolveEndpoint(path.path);
    setEdgeContext(request, {
      resolved,
      query: path.query,
      requestId: '',
      startedAt: this.clock.now(),
      headers: [],
      reader: null,
      presence: null,
    });
    return resolved === undefined ? NOWHERE : resolved.endpoint.route;
  }

  /** Fastify's first `onRequest` hook. */
  admit(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
    const { raw } = request;
    const context = edgeContext(raw);
    context.requestId = requestIdOf(raw.headers['x-request-id']);
    context.headers = ['x-request-id', context.requestId];
    if (!this.#cors.off) context.headers.push(...this.#cors.headers(raw));
    const preflight = this.#cors.isPreflight(raw);
    const error = this.#objection(raw.method ?? '', context, preflight);
    if (error !== null) {
      this.#refuse(request, reply, context, error);
    } else if (preflight) {
      reply.hijack();
      const method = (context.resolved as { endpoint: Endpoint }).endpoint.method;
      reply.raw.writeHead(204, [...context.headers, ...this.#cors.preflightHeaders(raw, method)]).end();
    } else if (
      context.resolved?.endpoint.name === 'chat' &&
      mediaType(raw.headers['content-type']) !== 'application/json'
    ) {
      this.#refuse(request, reply, context, unsupportedMediaType());
    } else {
      if (context.resolved?.endpoint.name === 'chat') {
        this.open.enter(context);
        context.presence = new ClientPresence(raw, reply.raw, () => this.open.leave(context));
      }
      done();
    }
  }

  #objection(method: string, { resolved }: EdgeContext, preflight: boolean): GatewayError | null {
    if (this.state.draining && resolved?.endpoint.operational !== true) return shuttingDown();
    if (resolved === undefined) return unknownPath();
    const allowed = resolved.endpoint.method;
    if (method === allowed || (method === 'HEAD' && allowed === 'GET')) return null;
    if (preflight) return null;
    return wrongMethod(allowed === 'GET' ? 'GET, HEAD' : allowed);
  }

  #refuse(request: FastifyRequest, reply: FastifyReply, context: EdgeContext, error: GatewayError): void {
    const reason = rejectionReasonOf(error);
    // A wrong path or method is nobody's request for a model.
    const counts = reason === 'shutting_down' || context.resolved?.endpoint.name === 'chat';
    if (reason !== null && counts) this.metrics.rejected('', reason);
    this.log.rejected(context.requestId, '', error.status, error.code);
    reply.hijack();
    sendError(reply.raw, error, context.headers);
    // What is left of the body is read away, so that the client gets to read the answer.
    request.raw.resume();
  }
}

/** Path and query of a request target, which may be absolute (RFC 9112 §3.2.2). */
function pathOf(target: string): { path: string; query: string } {
  let start = 0;
  if (target.charCodeAt(0) !== 0x2f) {
    const authority = target.indexOf('://');
    start = authority < 0 ? target.length : target.indexOf('/', authority + 3);
    if (start < 0) start = target.length;
  }
  const question = target.indexOf('?', start);
  if (question < 0) return { path: target.slice(start), query: '' };
  return { path: target.slice(start, question), query: target.slice(question) };
}
