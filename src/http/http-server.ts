import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import Fastify, { type FastifyInstance, type RawRequestDefaultExpression } from 'fastify';
import { BodyReader, type BodyResult } from './body-reader.js';
import { ClientErrors } from './client-errors.js';
import { endsEarlier, takeRequest } from './connection-end.js';
import { type EdgeContext, edgeContext } from './edge-context.js';
import { FormBody, JsonBody } from './request-body.js';
import { inTurn } from './request-turns.js';
import type { EdgeService } from './edge.service.js';
import { schemaCompilers } from './schema-compilers.js';

/** Time a client has to send its head, and its whole request: against those who send a byte a minute. */
const HEADERS_TIMEOUT_MS = 60_000;
const REQUEST_TIMEOUT_MS = 300_000;
/** Longer than the idle time of common load balancers, so that they close first. */
const KEEP_ALIVE_TIMEOUT_MS = 72_000;
const HEAD_LIMIT_BYTES = 64 * 1024;

export interface HttpServerOptions {
  readonly bodyLimitBytes: number;
  /** Asked late: the edge exists only once the application is wired. */
  readonly edge: () => EdgeService;
}

/** The Fastify instance under the application: our body parser, our edge, no answer of its own. */
export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const errors = new ClientErrors(options.edge);
  const fastify = Fastify({
    logger: false,
    schemaController: { compilersFactory: schemaCompilers },
    exposeHeadRoutes: true,
    // Draining is ours: the listener stays open and says so itself.
    return503OnClosing: false,
    forceCloseConnections: true,
    bodyLimit: options.bodyLimitBytes,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // The host is checked by the edge, in our words.
    http: { maxHeaderSize: HEAD_LIMIT_BYTES, headersTimeout: HEADERS_TIMEOUT_MS, requireHostHeader: false },
    clientErrorHandler: (error, socket) => errors.refuse(error, socket as Socket),
    rewriteUrl: (request: RawRequestDefaultExpression) => options.edge().route(request),
    genReqId: () => '',
  });
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('*', (request, payload, done) => {
    const finish = (result: BodyResult) => done(null, result);
    const context = edgeContext(request.raw);
    const isForm = context.resolved?.endpoint.operation?.body === 'form';
    const parts = isForm ? new FormBody(request.raw.headers['content-type'] ?? '') : new JsonBody();
    const reader = new BodyReader(payload as IncomingMessage, options.bodyLimitBytes, parts, finish);
    context.reader = reader;
    reader.start();
    if (context.continueDue && !reader.over) sayContinue(context);
  });
  // Trap: else Node ends the socket at a client's FIN, and a stream that is under way is cut without a word.
  (fastify.server as { httpAllowHalfOpen?: boolean }).httpAllowHalfOpen = true;
  // Trap: beyond a thousand headers Node drops the rest in silence; the size of the head is limit enough.
  fastify.server.maxHeadersCount = 0;
  const onRequest = (request: IncomingMessage, response: ServerResponse) =>
    fastify.server.emit('request', request, response);
  fastify.server.on('checkContinue', onRequest);
  fastify.server.on('checkExpectation', onRequest);
  fastify.server.on('connect', (_request, socket) => errors.refuseTunnel(socket as Socket));
  fastify.addHook('onRequest', (request, reply, done) => {
    const { raw } = request;
    if (!takeRequest(raw, reply.raw)) {
      reply.hijack();
      return;
    }
    inTurn(raw.socket, reply.raw, () => {
      // While it waited its broken body may have been answered, or an answer before it may have ended the connection.
      if (reply.raw.headersSent || endsEarlier(raw.socket)) reply.hijack();
      else options.edge().admit(request, reply, done);
    });
  });
  return fastify;
}

/** Only once it is sure that the body is wanted: who is refused must not be asked to send it first. */
function sayContinue(context: EdgeContext): void {
  const { response } = context;
  if (response === null) return;
  context.continueDue = false;
  // Trap: behind an answer that is under way Node would put the interim answer in the wrong place.
  if (response.socket !== null) response.writeContinue();
  else
    response.once('socket', () => {
      if (!response.headersSent && !response.req.complete) response.writeContinue();
    });
}
