import type { IncomingMessage } from 'node:http';
import type { BodyReader } from './body-reader.js';
import type { ClientPresence } from './client-presence.js';
import type { ResolvedEndpoint } from './endpoint-table.js';

/** What the edge knows of a request before its body is read. Lives on the request itself. */
export interface EdgeContext {
  readonly resolved: ResolvedEndpoint | undefined;
  /** The client's query with its `?`, or ''. */
  readonly query: string;
  requestId: string;
  /** Monotonic. */
  readonly startedAt: number;
  /** Flat list of headers that every answer to this request carries. */
  headers: string[];
  /** Reads the body of an admitted chat request. */
  reader: BodyReader | null;
  /** Of a chat request that was admitted. */
  presence: ClientPresence | null;
}

const EDGE = Symbol('llm-proxy:edge');

type Marked = IncomingMessage & { [EDGE]?: EdgeContext };

export function setEdgeContext(request: IncomingMessage, context: EdgeContext): void {
  (request as Marked)[EDGE] = context;
}

export function edgeContext(request: IncomingMessage): EdgeContext {
  const context = (request as Marked)[EDGE];
  if (context === undefined) throw new Error('a request passed the edge unseen');
  return context;
}
