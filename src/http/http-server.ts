import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import Fastify, { type FastifyInstance, type RawRequestDefaultExpression } from 'fastify';
import { headersTooLarge, malformedRequest, requestTimeout } from '../common/errors/catalogue.js';
import type { GatewayError } from '../common/errors/gateway-error.js';
import { BodyReader, type BodyResult } from './body-reader.js';
import { edgeContext } from './edge-context.js';
import { FormBody, JsonBody } from './request-body.js';
import type { EdgeService } from './edge.service.js';

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
  const fastify = Fastify({
    logger: false,
    exposeHeadRoutes: true,
    // Draining is ours: the listener stays open and says so itself.
    return503OnClosing: false,
    forceCloseConnections: true,
    bodyLimit: options.bodyLimitBytes,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    http: { maxHeaderSize: HEAD_LIMIT_BYTES, headersTimeout: HEADERS_TIMEOUT_MS },
    clientErrorHandler: answerClientError,
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
  });
  // Trap: else Node ends the socket at a client's FIN, and a stream that is under way is cut without a word.
  (fastify.server as { httpAllowHalfOpen?: boolean }).httpAllowHalfOpen = true;
  fastify.server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    // Trap: behind an answer that is under way Node would put the interim answer in the wrong place.
    if (response.socket !== null) response.writeContinue();
    fastify.server.emit('request', request, response);
  });
  fastify.addHook('onRequest', (request, reply, done) => options.edge().admit(request, reply, done));
  return fastify;
}

/** Requests that are no HTTP never reach the framework: they are answered on the bare socket. */
function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  // Trap: on a connection whose answer is under way these bytes would land in the middle of it.
  const pending = (socket as { _httpMessage?: ServerResponse | null })._httpMessage;
  if (pending) {
    socket.destroy();
    return;
  }
  const answer = errorFor(error.code);
  const body = JSON.stringify(answer.body());
  socket.end(
    `HTTP/1.1 ${answer.status} ${REASON[answer.status]}\r\nconnection: close\r\n` +
      `content-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

const REASON: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
};

function errorFor(code: string | undefined): GatewayError {
  if (code === 'HPE_HEADER_OVERFLOW') return headersTooLarge();
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return requestTimeout();
  return malformedRequest();
}
