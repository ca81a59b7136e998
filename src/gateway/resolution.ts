import { Inject, Injectable } from '@nestjs/common';
import type { IncomingHttpHeaders } from 'node:http';
import {
  invalidAdminToken,
  invalidMetricsToken,
  miscasedKey,
  routeNotAllowed,
  unsupportedProtocol,
} from '../common/errors/access-errors.js';
import {
  invalidJson,
  missingModel,
  shuttingDown,
  unknownPath,
  unsupportedMediaType,
  wrongMethod,
} from '../common/errors/catalogue.js';
import type { GatewayError } from '../common/errors/gateway-error.js';
import { CaseTwins } from '../common/json/case-twins.js';
import { isJsonString, stringFault } from '../common/json/raw-value.js';
import type { WallClock } from '../common/time/clock.js';
import { isLikeAscii, mediaType, saysOtherCharset } from '../common/http/media-type.js';
import { printable } from '../common/text/mask.js';
import { ConfigStore } from '../config/config.store.js';
import type { RouteConfig } from '../config/access-config.js';
import { WALL_CLOCK } from '../contracts/ports.js';
import { type Operation, OPERATIONS } from '../contracts/operation.js';
import type { Caller } from '../consumers/caller.js';
import { bearerToken } from '../consumers/credentials.js';
import { isSameKey } from '../consumers/key-digest.js';
import { ConsumerRegistry } from '../consumers/consumer.registry.js';
import { IssuedIds } from '../consumers/issued-ids.js';
import type { ModelRoute } from '../routing/model-route.js';
import { RoutingService } from '../routing/routing.service.js';
import type { Sight } from '../routing/sight.js';
import { ConsumerDesk } from './consumer-desk.js';
import type { GatewayExchange } from './gateway-exchange.js';

const PATHS = OPERATIONS.map(({ path }) => path);
const EXPLAIN = 'x-llm-proxy-explain';
/** What decides the model, of which a reader that ignores case would see another one. */
const MODEL = new CaseTwins(['model']);

/** What keeps an endpoint: the keys of consumers where there are any, `server.metrics_token`, or nothing. */
export type Guard = 'key' | 'metrics_token' | 'none';

/** What a path leads to. */
export interface Destination {
  readonly endpoint: {
    readonly methods: readonly string[];
    /** Answered while the service is draining. */
    readonly operational: boolean;
    readonly guard: Guard;
    /** Null for what asks nothing of a model. */
    readonly operation: Operation | null;
  };
  /** Null for what is no business of any route. */
  readonly route: RouteConfig | null;
}

/** A request whose head has come. */
export interface Arrival {
  readonly draining: boolean;
  readonly destination: Destination | null;
  readonly method: string;
  readonly preflight: boolean;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  /** Set by the step that finds out, also where it refuses. */
  caller: Caller | null;
  /** Set where an administrator asks what would become of the request, which is then sent nowhere. */
  explains: boolean;
}

/**
 * Who gets what, step by step. The order is part of the API (docs/access.md): what a client learns first must not depend
 * on what comes later. Before the body: draining, path, method, preflight, key, route. With it: keys that could be
 * read as others, model, protocol, issued ids; then the limits of the consumer. Health and load are the business of the claim.
 */
@Injectable()
export class Resolution {
  readonly #token: string | null;
  readonly #adminToken: string | null;

  constructor(
    store: ConfigStore,
    private readonly consumers: ConsumerRegistry,
    private readonly routing: RoutingService,
    private readonly issued: IssuedIds,
    private readonly limits: ConsumerDesk,
    @Inject(WALL_CLOCK) private readonly wallClock: WallClock,
  ) {
    this.#token = store.current.server.metricsToken;
    this.#adminToken = store.current.server.adminToken;
  }

  /** The answer that ends the request before its body is read; null where it may go on. */
  beforeBody(arrival: Arrival): GatewayError | null {
    return (
      this.#draining(arrival) ??
      this.#unknownPath(arrival) ??
      this.#wrongMethod(arrival) ??
      (arrival.preflight
        ? null
        : (this.#unauthenticated(arrival) ?? this.#forbidden(arrival) ?? this.#unsupportedMedia(arrival)))
    );
  }

  /** The model with the candidates that this caller may use for this. Throws the answer that ends the request. */
  withBody(exchange: GatewayExchange): ModelRoute {
    this.#oneReading(exchange);
    const sight = this.#sight(exchange);
    const known = this.#knownModel(exchange, sight);
    const speaking = this.#supportedProtocol(exchange, known);
    return this.#issuedIds(exchange, speaking);
  }

  /**
   * 429 over the limits of the consumer, or a wait where the model has a queue; null where it may go on at once. What is
   * taken is given back by `leave`.
   */
  consumerLimits(exchange: GatewayExchange): Promise<void> | null {
    return this.limits.enter(exchange);
  }

  /** Once for each exchange, whatever came of it. */
  leave(exchange: GatewayExchange): void {
    this.limits.leave(exchange);
  }

  // ---- before the body

  #draining({ draining, destination }: Arrival): GatewayError | null {
    return draining && destination?.endpoint.operational !== true ? shuttingDown() : null;
  }

  #unknownPath({ destination }: Arrival): GatewayError | null {
    return destination === null ? unknownPath(PATHS) : null;
  }

  #wrongMethod({ destination, method, preflight }: Arrival): GatewayError | null {
    const methods = destination?.endpoint.methods ?? [];
    return preflight || methods.includes(method) ? null : wrongMethod(methods.join(', '));
  }

  /** 401. */
  #unauthenticated(arrival: Arrival): GatewayError | null {
    const { destination, headers, rawHeaders } = arrival;
    const guard = destination?.endpoint.guard ?? 'none';
    if (guard === 'metrics_token') return this.#metricsToken(arrival);
    if (guard === 'none') return null;
    if (this.#adminToken !== null && headers[EXPLAIN] === '1')
      return this.#administrator(arrival, this.#adminToken);
    if (!this.consumers.closed) return null;
    const { caller, error } = this.consumers.identify(headers, rawHeaders, this.wallClock());
    arrival.caller = caller;
    return error;
  }

  /** Nobody's key: whoever has this token sees everything. */
  #administrator(arrival: Arrival, wanted: string): GatewayError | null {
    const given = bearerToken(arrival.headers, arrival.rawHeaders);
    if (typeof given !== 'string' || !isSameKey(given, wanted)) return invalidAdminToken();
    arrival.explains = true;
    return null;
  }

  #metricsToken({ headers, rawHeaders }: Arrival): GatewayError | null {
    if (this.#token === null) return null;
    const given = bearerToken(headers, rawHeaders);
    return typeof given === 'string' && isSameKey(given, this.#token) ? null : invalidMetricsToken();
  }

  /** 403. */
  #forbidden({ caller, destination }: Arrival): GatewayError | null {
    const route = destination?.route ?? null;
    if (caller === null || route === null) return null;
    const wanted =
      caller.allows('routes', route.labels) && (route.select.consumers?.matches(caller.labels) ?? true);
    return wanted ? null : routeNotAllowed();
  }

  /** 415; what is in the body (400, 413) is for its reader to say. */
  #unsupportedMedia({ destination, headers }: Arrival): GatewayError | null {
    const operation = destination?.endpoint.operation ?? null;
    if (operation === null) return null;
    const isForm = operation.body === 'form';
    const wanted = isForm ? 'multipart/form-data' : 'application/json';
    const given = headers['content-type'];
    if (given === wanted) return null;
    if (mediaType(given) !== wanted) return unsupportedMediaType(wanted);
    const isOther = saysOtherCharset(given ?? '', isForm ? isLikeAscii : undefined);
    return isOther ? unsupportedMediaType(`${wanted} in UTF-8`) : null;
  }

  // ---- with the body

  /**
   * 400. A provider that ignores the case of keys, or reads more than JSON, must not see another model than is looked up
   * here.
   */
  #oneReading({ body, input }: GatewayExchange): void {
    if (!this.consumers.closed || input.operation.body !== 'json') return;
    const faultAt = body.faultAt();
    if (faultAt >= 0) throw invalidJson(`at byte ${faultAt} it is no JSON`);
    if (body.hasDoubtfulKey())
      throw invalidJson('a key in it holds a NUL, or what is no UTF-8: some readers see another one');
    const twin = body.caseTwin(MODEL);
    if (twin !== undefined) throw miscasedKey(printable(twin), 'model');
  }

  #sight({ input }: GatewayExchange): Sight | null {
    return input.route === null ? null : this.routing.sight(input.route, input.caller);
  }

  /** 404, the same for what is not there and for what this caller does not see. */
  #knownModel(exchange: GatewayExchange, sight: Sight | null): ModelRoute {
    const name = exchange.body.string('model');
    if (name === undefined) throw noModel(exchange.body.raw('model'));
    exchange.requestedModel = name;
    exchange.sight = sight;
    const { caller } = exchange.input;
    const route = this.routing.resolve(name, {
      requestId: exchange.id,
      sight,
      mayAddress: caller === null || caller.direct,
    });
    exchange.model = route.model;
    return route;
  }

  /** 400. */
  #supportedProtocol({ input, requestedModel }: GatewayExchange, known: ModelRoute): ModelRoute {
    const speaking = known.speaking(input.operation);
    if (speaking !== null) return speaking;
    // One that is addressed directly has no name of its own.
    const name = known.model.name === '' ? requestedModel : known.model.name;
    throw unsupportedProtocol(printable(name), input.operation.path);
  }

  /** 404 for what was issued to somebody else; what was issued here pins the request to its upstream. */
  #issuedIds(exchange: GatewayExchange, speaking: ModelRoute): ModelRoute {
    const { explains, operation } = exchange.input;
    if (operation.name !== 'responses') return speaking;
    const { body, consumer } = exchange;
    const pinned = this.issued.pinnedUpstream(body, consumer, this.consumers.closed, explains);
    if (pinned === null) return speaking;
    const only = speaking.only(({ upstream }) => upstream.id === pinned.upstream);
    if (only === null) throw pinned.notFound();
    exchange.issuingKey = pinned.key;
    exchange.namesIssued = true;
    return only;
  }
}

/** 400. Texts are only decoded where they are looked at: a broken one comes to light here. */
function noModel(raw: Buffer | undefined): GatewayError {
  return isJsonString(raw) ? invalidJson(`the value of "model" ${stringFault(raw)}`) : missingModel();
}
