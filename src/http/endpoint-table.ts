import type { Guard } from '../gateway/resolution.js';
import { type Operation, OPERATIONS } from '../contracts/operation.js';

/** What the service answers, in one place: paths, methods, and where each of them is handled. */
export type EndpointName = 'operation' | 'models' | 'model' | 'metrics' | 'healthz' | 'readyz';

export interface Endpoint {
  readonly name: EndpointName;
  readonly method: 'GET' | 'POST';
  /** As `Allow` names them. */
  readonly methods: readonly string[];
  /** The one path its controller listens on, whatever path the client used. */
  readonly route: string;
  /** Answered while the service is draining. */
  readonly operational: boolean;
  readonly guard: Guard;
  /** Of requests for a model. */
  readonly operation: Operation | null;
}

export const ROUTES = {
  operation: '/operation',
  models: '/models',
  model: '/models/:id',
  metrics: '/metrics',
  healthz: '/healthz',
  readyz: '/readyz',
} as const;

const get = (name: EndpointName, route: string, guard: Guard = 'key'): Endpoint => ({
  name,
  method: 'GET',
  methods: ['GET', 'HEAD'],
  route,
  operational: guard !== 'key',
  guard,
  operation: null,
});

export const MODEL: Endpoint = get('model', '/models/-');

/** Below the path of a route. */
export const ROUTED: ReadonlyMap<string, Endpoint> = new Map([
  ...OPERATIONS.map((operation): [string, Endpoint] => [
    operation.path,
    {
      name: 'operation',
      method: 'POST',
      methods: ['POST'],
      route: ROUTES.operation,
      operational: false,
      guard: 'key',
      operation,
    },
  ]),
  ['/models', get('models', ROUTES.models)],
]);

/** Where they stand, and nowhere else. */
export const OPERATIONAL: ReadonlyMap<string, Endpoint> = new Map([
  ['/metrics', get('metrics', ROUTES.metrics, 'metrics_token')],
  ['/healthz', get('healthz', ROUTES.healthz, 'none')],
  ['/readyz', get('readyz', ROUTES.readyz, 'none')],
]);
