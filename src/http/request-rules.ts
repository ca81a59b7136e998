import type { IncomingMessage } from 'node:http';
import {
  invalidHost,
  malformedRequest,
  unknownExpectation,
  unsupportedTransferCoding,
  unsupportedVersion,
} from '../common/errors/catalogue.js';
import type { RequestTarget } from './request-target.js';
import type { GatewayError } from '../common/errors/gateway-error.js';

/** `uri-host [":" port]` (RFC 9110 §7.2). */
const HOST = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=%]*|\[[A-Za-z0-9\-._~!$&'()*+,;=%:]+\])(?::\d*)?$/;

export function isHost(text: string): boolean {
  return HOST.test(text);
}

/**
 * What RFC 9110 and 9112 forbid and the parser lets through; null for a sound head. Two readings of one request are how
 * requests are smuggled past a proxy in front, so nothing doubtful is repaired.
 */
export function protocolObjection(request: IncomingMessage, target: RequestTarget): GatewayError | null {
  const { headers, httpVersionMajor, httpVersionMinor } = request;
  if (httpVersionMajor !== 1) return unsupportedVersion();
  if (!target.isSound) return malformedRequest();
  const current = httpVersionMinor > 0;
  const hosts = hostLines(request.rawHeaders);
  if (hosts > 1 || (hosts === 0 && current)) return invalidHost();
  if (headers.host !== undefined && !isHost(headers.host)) return invalidHost();
  const coding = headers['transfer-encoding'];
  if (coding !== undefined) {
    if (!current) return malformedRequest();
    if (coding.toLowerCase() !== 'chunked') return unsupportedTransferCoding();
  }
  if (headers.expect && current && !isContinue(headers.expect)) return unknownExpectation();
  return null;
}

/** Whether the client waits for a word before it sends its body (RFC 9110 §10.1.1; never in HTTP/1.0). */
export function awaitsContinue(request: IncomingMessage): boolean {
  const { expect } = request.headers;
  return expect !== undefined && request.httpVersionMinor > 0 && isContinue(expect) && hasBody(request);
}

/** Whoever sends none waits for no word. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function isContinue(expect: string): boolean {
  return expect.toLowerCase() === '100-continue';
}

/** Trap: of several Host lines `headers` shows the first. */
function hostLines(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') count++;
  }
  return count;
}
