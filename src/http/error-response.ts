import type { ServerResponse } from 'node:http';
import type { GatewayError } from '../common/errors/gateway-error.js';

/** Sends an answer of our own. Only before a head was sent; a response that is gone is left alone. */
export function sendError(response: ServerResponse, error: GatewayError, headers: readonly string[]): void {
  if (response.headersSent || response.destroyed) return;
  const body = Buffer.from(JSON.stringify(error.body()));
  const all = [...headers];
  for (const name in error.headers) all.push(name, error.headers[name] as string);
  all.push('content-type', 'application/json; charset=utf-8', 'content-length', String(body.length));
  response.writeHead(error.status, all);
  response.end(body);
}
