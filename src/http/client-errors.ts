import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import {
  headersTooLarge,
  malformedRequest,
  requestTimeout,
  unknownMethod,
  unsupportedVersion,
  wrongMethod,
} from '../common/errors/catalogue.js';
import type { GatewayError } from '../common/errors/gateway-error.js';
import { drained } from './client-presence.js';
import { takeNoMore } from './connection-end.js';
import { edgeContext } from './edge-context.js';
import type { EdgeService } from './edge.service.js';
import { sendError } from './error-response.js';

/**
 * Answers what the parser refuses, which never reaches the framework, and closes the connection. What was asked before
 * gets its answer first. Lives as long as the server.
 */
export class ClientErrors {
  constructor(private readonly edge: () => EdgeService) {}

  /** The parser gave up on a connection, or a request did not arrive in time. May be told again for later bytes. */
  refuse(error: ParserError, socket: Socket): void {
    const last = takeNoMore(socket);
    if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) {
      // Nobody is there to be answered, but who left amid a body is noted.
      if (last?.complete === false) edgeContext(last).reader?.refuse(errorFor(error));
      socket.destroy();
      return;
    }
    if (last === null) return;
    const answer = errorFor(error);
    if (last === undefined) {
      this.#answerBare(socket, answer);
      return;
    }
    const context = edgeContext(last);
    const { reader, response } = context;
    if (last.complete) {
      after(response, () => this.#answerBare(socket, answer));
      return;
    }
    // The trouble is in the body of this request: the answer is its own, unless it has one already.
    if (reader !== null) reader.refuse(answer);
    else if (response !== null) sendError(response, answer, context);
    after(response, () => socket.destroySoon());
  }

  /**
   * CONNECT: no tunnels here. Trap: Node has let go of the connection, and tells the answers that are still to come on it
   * no more when it has drained.
   */
  refuseTunnel(socket: Socket): void {
    socket.on('error', () => {});
    socket.on('drain', () => drained(socket));
    // What follows is for the tunnel; it is read so that the client's leaving is seen.
    socket.resume();
    const last = takeNoMore(socket);
    if (last === null) return;
    const refuse = () => this.#answerBare(socket, wrongMethod('GET, HEAD, POST'));
    if (last === undefined) refuse();
    else after(edgeContext(last).response, refuse);
  }

  #answerBare(socket: Socket, answer: GatewayError): void {
    if (!socket.writable) return;
    const body = JSON.stringify(answer.body());
    const headers = { ...answer.headers, connection: 'close' };
    let head = `HTTP/1.1 ${answer.status} ${REASON[answer.status]}\r\nx-request-id: ${this.edge().refusedUnread(answer)}\r\n`;
    for (const [name, value] of Object.entries(headers)) head += `${name}: ${value}\r\n`;
    head += `content-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`;
    socket.write(head + body);
    socket.destroySoon();
  }
}

/** When the answer has left, or at once where it has. */
function after(response: ServerResponse | null, then: () => void): void {
  if (response === null || response.writableFinished) then();
  else response.once('finish', then);
}

const REASON: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
  501: 'Not Implemented',
  505: 'HTTP Version Not Supported',
};

/** What the parser says beside its code. */
export interface ParserError extends NodeJS.ErrnoException {
  readonly bytesParsed?: number;
  /** A buffer, whatever the framework's types say. */
  readonly rawPacket?: unknown;
}

function errorFor(error: ParserError): GatewayError {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return headersTooLarge();
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return requestTimeout();
    case 'HPE_INVALID_VERSION':
      return isRequestLine(lineAt(error), /^HTTP\/\d\.\d$/) ? unsupportedVersion() : malformedRequest();
    case 'HPE_INVALID_METHOD':
      return isRequestLine(lineAt(error), /^HTTP\/1\.[01]$/) ? unknownMethod() : malformedRequest();
    default:
      return malformedRequest();
  }
}

/** Longest first line that is looked at. */
const LINE_BYTES = 8192;

/** The line in which the parser stopped, as far as it came in one packet. */
function lineAt({ bytesParsed = 0, rawPacket }: ParserError): string {
  if (!Buffer.isBuffer(rawPacket)) return '';
  const start = bytesParsed === 0 ? 0 : rawPacket.lastIndexOf(0x0a, bytesParsed - 1) + 1;
  const end = rawPacket.indexOf(0x0d, bytesParsed);
  return end < 0 || end - start > LINE_BYTES ? '' : rawPacket.toString('latin1', start, end);
}

/** All is well but the one part that nobody here knows. */
function isRequestLine(line: string, versions: RegExp): boolean {
  const [method = '', target = '', version = '', ...rest] = line.split(' ');
  const isToken = /^[A-Za-z0-9!#$%&'*+\-.^_`|~]+$/.test(method);
  return isToken && target !== '' && versions.test(version) && rest.length === 0;
}
