import type { ServerResponse } from 'node:http';
import { internalError } from '../common/errors/catalogue.js';
import { errorBytes, type ErrorForm } from '../common/errors/error-form.js';
import { type GatewayError, isErrorStatus } from '../common/errors/gateway-error.js';
import { endWith } from './connection-end.js';
import { readAway } from './read-away.js';

/** What an answer of our own needs to know of its request. */
export interface Answering {
  readonly requestId: string;
  readonly form: ErrorForm;
  /** Flat list of headers that every answer to this request carries. */
  readonly headers: readonly string[];
  /** The client was not told to send its body: it may come or not, so the connection cannot be used again. */
  readonly continueDue: boolean;
}

/**
 * Sends an answer of our own. Only before a head was sent; a response that is gone is left alone.
 * @throws what keeps this error from being written; the client has a plain 500 then
 */
export function sendError(
  response: ServerResponse,
  error: GatewayError,
  answering: Answering,
  headers: readonly string[] = [],
): void {
  if (response.headersSent || response.destroyed) return;
  try {
    // Trap: Node writes a 101 or a 204 too, and the client waits on, or takes it for a success.
    if (!isErrorStatus(error.status)) throw new RangeError('not the status of an error');
    write(response, error, answering, headers);
  } catch (fault) {
    // Trap: without any answer the client waits for ever, and so does all that it asks behind this.
    if (response.headersSent) response.destroy();
    else write(response, internalError(), answering, []);
    throw fault;
  }
}

function write(
  response: ServerResponse,
  error: GatewayError,
  answering: Answering,
  headers: readonly string[],
): void {
  const { continueDue, form, requestId } = answering;
  const body = errorBytes(error, form, requestId);
  const all = [...answering.headers, ...headers];
  if (form === 'anthropic') all.push('request-id', requestId);
  for (const name in error.headers) {
    if (name === 'connection' && closes(all)) continue;
    all.push(name, error.headers[name] as string);
  }
  all.push('content-type', 'application/json; charset=utf-8', 'content-length', String(body.length));
  if (continueDue && !closes(all)) all.push('connection', 'close');
  // Bytes of the client may still be on their way: they must not cost it its answer.
  const { req: request } = response;
  const bodyComes = request?.complete === false && !continueDue;
  if (request !== undefined && (closes(all) || (bodyComes && !response.shouldKeepAlive)))
    endWith(request, bodyComes);
  response.writeHead(error.status, all);
  response.end(body);
  if (request !== undefined) readAway(response);
}

function closes(headers: readonly string[]): boolean {
  const at = headers.indexOf('connection');
  return at >= 0 && headers[at + 1] === 'close';
}
