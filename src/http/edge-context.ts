import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BodyReader } from './body-reader.js';
import type { ClientPresence } from './client-presence.js';
import type { ErrorForm } from '../common/errors/error-form.js';
import type { Caller } from '../consumers/caller.js';
import type { RequestTarget } from './request-target.js';
import type { ResolvedEndpoint } from './route-table.js';

/** What the edge knows of a request before its body is read. Lives on the request itself. */
export interface EdgeContext {
  readonly resolved: ResolvedEndpoint | undefined;
  readonly target: RequestTarget;
  requestId: string;
  /** In whose form errors and lists of models are told. */
  form: ErrorForm;
  /** Who asks; null where the service is open, or nobody known. */
  caller: Caller | null;
  /** Monotonic. */
  readonly startedAt: number;
  /** Flat list of headers that every answer to this request carries. */
  headers: string[];
  /** Reads the body of an admitted request for a model; null once that is over. */
  reader: BodyReader | null;
  /** Of a request for a model that was admitted and is not over. */
  presence: ClientPresence | null;
  /** Null before the framework has it, and once a request for a model is over. */
  response: ServerResponse | null;
  /** The client waits for `100 Continue` before it sends its body, and has not been told to go on. */
  continueDue: boolean;
  /** An administrator asks what would become of it. */
  explains: boolean;
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
