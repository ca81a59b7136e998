import type { RouteConfig } from '../config/access-config.js';
import { type Endpoint, MODEL, OPERATIONAL, ROUTED } from './endpoint-table.js';

export interface ResolvedEndpoint {
  readonly endpoint: Endpoint;
  /** Null of what belongs to no route. */
  readonly route: RouteConfig | null;
  /** For `model`: the id in the path, its slashes in order, decoded. */
  readonly modelId: string;
  /** The same as it stands in the path: an id may end with a slash, or hold two in a row. */
  readonly verbatimId: string;
}

/** Clients get base urls wrong: what has no route of its own is looked for here. */
const DEFAULT_PATH = '/v1';
/** Some SDKs add it to whatever base url they are given. */
const ADDED = '/v1';
const MODELS = '/models/';

/**
 * From the path of a request to route and endpoint. The longest path of a route that fits, by whole segments, wins;
 * paths are compared as they come, never decoded. Compiled once; the usual paths take one look into a map.
 */
export class RouteTable {
  /** Longest first, with a slash at the end. */
  readonly #routes: readonly { readonly prefix: string; readonly route: RouteConfig }[];
  readonly #default: RouteConfig | undefined;
  readonly #exact = new Map<string, ResolvedEndpoint>();

  constructor(routes: readonly RouteConfig[]) {
    this.#routes = routes
      .map((route) => ({ prefix: route.path === '/' ? '/' : `${route.path}/`, route }))
      .sort((a, b) => b.prefix.length - a.prefix.length);
    this.#default = routes.find(({ path }) => path === DEFAULT_PATH);
    for (const { prefix } of [...this.#routes, { prefix: '/' }]) {
      const base = prefix.slice(0, -1);
      for (const path of ROUTED.keys()) {
        this.#remember(base + path);
        this.#remember(base + ADDED + path);
      }
    }
    for (const [path, endpoint] of OPERATIONAL)
      this.#exact.set(path, { endpoint, route: null, modelId: '', verbatimId: '' });
  }

  /** Of a path without its query; undefined where there is nothing. */
  resolve(path: string): ResolvedEndpoint | undefined {
    return this.#exact.get(path) ?? this.#resolveSlowly(path);
  }

  #remember(path: string): void {
    const found = this.#find(path);
    if (found !== undefined) this.#exact.set(path, found);
  }

  #resolveSlowly(path: string): ResolvedEndpoint | undefined {
    const segments = path.split('/').filter((segment) => segment !== '');
    if (segments.some(isDotSegment)) return undefined;
    const normal = `/${segments.join('/')}`;
    const found = this.#exact.get(normal) ?? this.#find(normal);
    if (found?.endpoint !== MODEL) return found;
    const before = segments.length - found.verbatimId.split('/').length;
    return { ...found, verbatimId: decoded(behind(path, before)) };
  }

  #find(path: string): ResolvedEndpoint | undefined {
    const own = this.#routes.find(({ prefix }) => path.startsWith(prefix));
    const route = own?.route ?? this.#default;
    if (route === undefined || route.disabled) return undefined;
    const rest = own === undefined ? path : path.slice(own.prefix.length - 1);
    return (
      inRoute(route, rest) ??
      (rest.startsWith(`${ADDED}/`) ? inRoute(route, rest.slice(ADDED.length)) : undefined)
    );
  }
}

function inRoute(route: RouteConfig, rest: string): ResolvedEndpoint | undefined {
  const endpoint = ROUTED.get(rest);
  if (endpoint !== undefined) return { endpoint, route, modelId: '', verbatimId: '' };
  if (!rest.startsWith(MODELS) || rest.length === MODELS.length) return undefined;
  const verbatimId = rest.slice(MODELS.length);
  return { endpoint: MODEL, route, modelId: decoded(verbatimId), verbatimId };
}

/** What stands behind so many segments and the one slash after them. */
function behind(path: string, segments: number): string {
  let at = 0;
  for (let i = 0; i < segments; i++) {
    while (path[at] === '/') at++;
    while (at < path.length && path[at] !== '/') at++;
  }
  return path.slice(at + 1);
}

/** Also percent-encoded: whoever decodes later would climb up. */
function isDotSegment(segment: string): boolean {
  if (segment.length > 6) return false;
  const plain = segment.replace(/%2e/gi, '.');
  return plain === '.' || plain === '..';
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
