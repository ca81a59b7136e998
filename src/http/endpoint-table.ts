/** What the service answers, in one place: paths, methods, and how a request target finds its endpoint. */
export type EndpointName = 'chat' | 'models' | 'model' | 'metrics' | 'healthz' | 'readyz';

export interface Endpoint {
  readonly name: EndpointName;
  readonly method: 'GET' | 'POST';
  /** The one path its controller listens on, whatever path the client used. */
  readonly route: string;
  /** Answered while the service is draining. */
  readonly operational: boolean;
}

export interface ResolvedEndpoint {
  readonly endpoint: Endpoint;
  /** For `model`: the id in the path, decoded. */
  readonly modelId: string;
}

const define = (
  name: EndpointName,
  method: 'GET' | 'POST',
  route: string,
  operational = false,
): ResolvedEndpoint => ({ endpoint: { name, method, route, operational }, modelId: '' });

export const ROUTES = {
  chat: '/v1/chat/completions',
  models: '/v1/models',
  model: '/v1/models/:id',
  metrics: '/metrics',
  healthz: '/healthz',
  readyz: '/readyz',
} as const;

const CHAT = define('chat', 'POST', ROUTES.chat);
const MODELS = define('models', 'GET', ROUTES.models);
const MODEL = define('model', 'GET', '/v1/models/-').endpoint;

/** Clients get base URLs wrong: everything under /v1 also answers without it. */
const EXACT: ReadonlyMap<string, ResolvedEndpoint> = new Map([
  ['/v1/chat/completions', CHAT],
  ['/chat/completions', CHAT],
  ['/v1/models', MODELS],
  ['/models', MODELS],
  ['/metrics', define('metrics', 'GET', ROUTES.metrics, true)],
  ['/healthz', define('healthz', 'GET', ROUTES.healthz, true)],
  ['/readyz', define('readyz', 'GET', ROUTES.readyz, true)],
]);

const MODEL_PREFIXES = ['/v1/models/', '/models/'] as const;

/** The endpoint of a path without its query; undefined where there is none. */
export function resolveEndpoint(path: string): ResolvedEndpoint | undefined {
  const exact = EXACT.get(path);
  if (exact !== undefined) return exact;
  const normal = collapseSlashes(path);
  const resolved = EXACT.get(normal);
  if (resolved !== undefined) return resolved;
  for (const prefix of MODEL_PREFIXES) {
    if (normal.startsWith(prefix)) return { endpoint: MODEL, modelId: decoded(normal.slice(prefix.length)) };
  }
  return undefined;
}

/** Doubled slashes become one, a trailing one goes; in one pass, since the path is the client's. */
function collapseSlashes(path: string): string {
  const segments: string[] = [];
  for (const segment of path.split('/')) if (segment !== '') segments.push(segment);
  return `/${segments.join('/')}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
