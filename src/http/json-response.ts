import type { FastifyReply, FastifyRequest } from 'fastify';
import { edgeContext } from './edge-context.js';

/** Sends a small JSON answer of the service itself. */
export function sendJson(request: FastifyRequest, reply: FastifyReply, value: object, status = 200): void {
  sendText(request, reply, JSON.stringify(value), 'application/json; charset=utf-8', status);
}

export function sendText(
  request: FastifyRequest,
  reply: FastifyReply,
  text: string,
  contentType: string,
  status = 200,
): void {
  reply.hijack();
  // While a text was made the request's body may have broken, and that was told.
  if (reply.raw.headersSent || reply.raw.destroyed) return;
  const body = Buffer.from(text);
  const { headers } = edgeContext(request.raw);
  reply.raw.writeHead(status, [
    ...headers,
    'content-type',
    contentType,
    'content-length',
    String(body.length),
  ]);
  reply.raw.end(body);
}
