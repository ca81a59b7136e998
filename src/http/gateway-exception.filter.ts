import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { internalError, malformedRequest, unsupportedMediaType } from '../common/errors/catalogue.js';
import { GatewayError } from '../common/errors/gateway-error.js';
import { GatewayLog } from '../observability/log/gateway-log.js';
import { type EdgeContext, edgeContext } from './edge-context.js';
import { sendError } from './error-response.js';

/** Whatever the framework throws at a client becomes an error of ours; its own bodies never leave the process. */
@Catch()
export class GatewayExceptionFilter implements ExceptionFilter {
  constructor(private readonly log: GatewayLog) {}

  catch(exception: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    const reply = http.getResponse<FastifyReply>();
    const context = edgeContext(request.raw);
    const error = this.#answerFor(exception, context.requestId);
    if (!reply.sent) reply.hijack();
    if (reply.raw.headersSent) reply.raw.destroy();
    else this.#send(reply, error, context);
  }

  /** Trap: a controller of a plugin may throw an error that cannot be written. */
  #send(reply: FastifyReply, error: GatewayError, context: EdgeContext): void {
    try {
      sendError(reply.raw, error, context);
    } catch (fault) {
      this.log.unexpected(context.requestId, 'the answer of an error', fault);
    }
  }

  #answerFor(exception: unknown, requestId: string): GatewayError {
    if (exception instanceof GatewayError) return exception;
    const status = (exception as { statusCode?: unknown } | null)?.statusCode;
    if (status === 415) return unsupportedMediaType();
    if (typeof status === 'number' && status >= 400 && status < 500) return malformedRequest();
    this.log.unexpected(requestId, 'the HTTP layer', exception);
    return internalError();
  }
}
