import { Inject, Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest, RawRequestDefaultExpression } from 'fastify';
import type { IncomingHttpHeaders } from 'node:http';
import type { ErrorForm } from '../common/errors/error-form.js';
import type { GatewayError } from '../common/errors/gateway-error.js';
import type { Clock } from '../common/time/clock.js';
import { ConfigStore } from '../config/config.store.js';
import { CLOCK } from '../contracts/ports.js';
import { type Arrival, Resolution } from '../gateway/resolution.js';
import { ClientPresence } from './client-presence.js';
import { endsSoon } from './connection-end.js';
import { Cors } from './cors.js';
import { type EdgeContext, edgeContext, setEdgeContext } from './edge-context.js';
import { OpenRequests } from './open-requests.js';
import { readAway } from './read-away.js';
import { Refusals } from './refusals.js';
import { requestIdOf } from './request-id.js';
import { awaitsContinue, protocolObjection } from './request-rules.js';
import { parseTarget } from './request-target.js';
import { type ResolvedEndpoint, RouteTable } from './route-table.js';
import { ServiceState } from './service-state.js';

/** Nothing listens here: unknown paths never reach the framework's router with a text of the client. */
const BEARER = /^bearer\s+\S/i;
const NOWHERE = '/-';

/**
 * Sees each request first, before its body is read: where it goes, its id, and whether it may go on, which is for
 * `Resolution` to say.
 */
@Injectable()
export class EdgeService {
  readonly #cors: Cors;
  readonly #routes: RouteTable;

  constructor(
    store: ConfigStore,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly state: ServiceState,
    private readonly open: OpenRequests,
    private readonly resolution: Resolution,
    private readonly refusals: Refusals,
  ) {
    this.#cors = new Cors(store.current.server.cors);
    this.#routes = new RouteTable(store.current.routes);
  }

  /** Fastify's `rewriteUrl`: every path a client may use becomes the one its controller listens on. */
  route(request: RawRequestDefaultExpression): string {
    const target = parseTarget(request.url ?? '/', request.method);
    const resolved = target.isSound ? this.#routes.resolve(target.path) : undefined;
    setEdgeContext(request, {
      resolved,
      target,
      requestId: '',
      form: 'openai',
      caller: null,
      startedAt: this.clock.now(),
      headers: [],
      reader: null,
      presence: null,
      response: null,
      continueDue: false,
      explains: false,
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
    if (this.state.draining || endsSoon(raw.socket)) context.headers.push('connection', 'close');
    const { resolved } = context;
    context.form = resolved?.endpoint.operation?.form ?? formOf(raw.headers);
    context.continueDue = awaitsContinue(raw);
    const preflight = this.#cors.isPreflight(raw);
    const arrival: Arrival = {
      draining: this.state.draining,
      destination: resolved ?? null,
      method: raw.method ?? '',
      preflight,
      headers: raw.headers,
      rawHeaders: raw.rawHeaders,
      caller: null,
      explains: false,
    };
    const error = protocolObjection(raw, context.target) ?? this.resolution.beforeBody(arrival);
    context.caller = arrival.caller;
    context.explains = arrival.explains;
    if (error !== null) {
      this.#refuse(request, reply, context, error);
    } else if (preflight) {
      reply.hijack();
      readAway(reply.raw);
      const method = (resolved as ResolvedEndpoint).endpoint.method;
      reply.raw.writeHead(204, [...context.headers, ...this.#cors.preflightHeaders(raw, method)]).end();
    } else {
      if (resolved?.endpoint.name === 'operation') {
        this.open.enter(context);
        context.presence = new ClientPresence(raw, reply.raw, () => this.#leave(context));
      } else {
        // Nobody reads a body here; where it may come or not, what follows on this connection could be either.
        if (context.continueDue && !this.state.draining) context.headers.push('connection', 'close');
        readAway(reply.raw);
      }
      done();
    }
  }

  /** Of a request that never got as far as a head: the line in the log, and the id that its answer carries. */
  refusedUnread(error: GatewayError): string {
    const requestId = requestIdOf(undefined);
    this.refusals.note(requestId, error);
    return requestId;
  }

  /** A request for a model is over. Its connection may be kept, its body must not. */
  #leave(context: EdgeContext): void {
    this.open.leave(context);
    context.reader = null;
    context.presence = null;
    context.response = null;
  }

  #refuse(request: FastifyRequest, reply: FastifyReply, context: EdgeContext, error: GatewayError): void {
    reply.hijack();
    this.refusals.send(reply.raw, context, error);
  }
}

/** Where the path does not tell. Another scheme than Bearer counts as no header. */
function formOf(headers: IncomingHttpHeaders): ErrorForm {
  const anthropic =
    headers['anthropic-version'] !== undefined ||
    (headers['x-api-key'] !== undefined && !BEARER.test(headers.authorization ?? ''));
  return anthropic ? 'anthropic' : 'openai';
}
