import type { IncomingMessage } from 'node:http';

/** All that the service says of itself in the head of an answer. */
const EXPOSED = [
  'x-request-id',
  'request-id',
  'x-upstream-request-id',
  'x-llm-proxy-model',
  'x-llm-proxy-upstream',
  'x-llm-proxy-provider',
  'x-llm-proxy-real-model',
  'x-llm-proxy-attempts',
  'x-llm-proxy-trail',
  'x-llm-proxy-queue-ms',
  'x-llm-proxy-affinity',
  'x-should-retry',
  'retry-after',
  'retry-after-ms',
].join(', ');

/** CORS for the origins of `server.cors`; built once. */
export class Cors {
  readonly #any: boolean;
  readonly #origins: ReadonlySet<string>;

  constructor(origins: readonly string[]) {
    this.#any = origins.includes('*');
    this.#origins = new Set(origins);
  }

  get off(): boolean {
    return !this.#any && this.#origins.size === 0;
  }

  /** Headers for an answer to this request, as a flat list. */
  headers(request: IncomingMessage): string[] {
    const { origin } = request.headers;
    if (this.off) return [];
    if (origin === undefined || !(this.#any || this.#origins.has(origin))) return ['vary', 'origin'];
    const allowed = this.#any ? '*' : origin;
    return [
      'access-control-allow-origin',
      allowed,
      'access-control-expose-headers',
      EXPOSED,
      'vary',
      'origin',
    ];
  }

  isPreflight(request: IncomingMessage): boolean {
    return (
      !this.off &&
      request.method === 'OPTIONS' &&
      request.headers.origin !== undefined &&
      request.headers['access-control-request-method'] !== undefined
    );
  }

  preflightHeaders(request: IncomingMessage, method: string): string[] {
    const asked = request.headers['access-control-request-headers'];
    return [
      'access-control-allow-methods',
      method,
      'access-control-allow-headers',
      asked ?? 'authorization, content-type',
      'access-control-max-age',
      '600',
      'content-length',
      '0',
    ];
  }
}
