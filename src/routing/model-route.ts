import { PluginMistake, refusePromise } from '../common/errors/plugin-mistake.js';
import { UNSPOKEN } from '../config/access-config.js';
import type { ModelConfig, UpstreamConfig } from '../config/gateway-config.js';
import type { Operation } from '../contracts/operation.js';
import type { Exchange } from '../contracts/exchange.js';
import type { RoutingChoice, RoutingPolicy } from '../contracts/routing-policy.js';
import type { Candidate } from './candidate.js';
import type { Plan } from './plan.js';

/** A candidate as a policy sees it, for all requests: nothing of it can be changed. */
class Choice implements RoutingChoice {
  constructor(readonly candidate: Candidate) {
    Object.freeze(this);
  }

  get upstream() {
    return this.candidate.upstream.config;
  }

  get entry() {
    return this.candidate.entry;
  }

  get active(): number {
    return this.candidate.upstream.slots.active;
  }

  get limit(): number {
    return this.candidate.upstream.slots.limit;
  }

  get firstByteMs(): number | null {
    return this.candidate.upstream.firstByte.ms;
  }
}

/** A model's candidates by tier, and how they are ordered within one. Lives with the configuration. */
export class ModelRoute {
  /** In the order of tiers and, within one, of the file. */
  readonly candidates: readonly Candidate[];
  readonly #tiers: readonly (readonly Choice[])[];
  readonly #listed: Plan;
  readonly #speaking = new Map<Operation, ModelRoute | null>();

  constructor(
    readonly model: ModelConfig,
    candidates: readonly Candidate[],
    /** Null = as listed. */
    readonly policy: RoutingPolicy | null,
  ) {
    const tiers = Map.groupBy(candidates, ({ entry }) => entry.tier);
    const rising = [...tiers].sort(([a], [b]) => a - b).map(([, members]) => members);
    this.candidates = rising.flat();
    this.#tiers = rising.map((members) => members.map((candidate) => new Choice(candidate)));
    this.#listed = { model, candidates: this.candidates, maxAttempts: model.maxAttempts, leftOut: [] };
  }

  /** The order for one request. Throws what the policy throws, and for what is no order. */
  plan(exchange: Exchange): Plan {
    const { policy } = this;
    if (policy === null) return this.#listed;
    const candidates = this.#tiers.flatMap((tier) => ordered(tier, policy, exchange));
    return { ...this.#listed, candidates };
  }

  /** With these candidates only; the very route where all are kept, null where none is. */
  only(wanted: (candidate: Candidate) => boolean): ModelRoute | null {
    const candidates = this.candidates.filter(wanted);
    if (candidates.length === 0) return null;
    return candidates.length === this.candidates.length
      ? this
      : new ModelRoute(this.model, candidates, this.policy);
  }

  /** With the candidates that can do this; null where none can. */
  speaking(operation: Operation): ModelRoute | null {
    let route = this.#speaking.get(operation);
    if (route === undefined) {
      route = this.only(({ upstream }) => lacks(upstream.config, operation) === null);
      this.#speaking.set(operation, route);
    }
    return route;
  }

  get listed(): Plan {
    return this.#listed;
  }
}

/**
 * The capability, and the protocol asked, or where none is asked any that is spoken here; null where an upstream has both, else
 * what it lacks.
 */
export function lacks(
  { protocols, serves }: UpstreamConfig,
  { protocol, capability }: Operation,
): 'serves' | 'protocol' | null {
  if (!serves.includes(capability)) return 'serves';
  const speaks =
    protocol === null ? protocols.some((one) => !UNSPOKEN.has(one)) : protocols.includes(protocol);
  return speaks ? null : 'protocol';
}

/** Each member once, whatever the policy gave back. */
function ordered(tier: readonly Choice[], policy: RoutingPolicy, exchange: Exchange): Candidate[] {
  if (tier.length < 2) return tier.map(({ candidate }) => candidate);
  const known: ReadonlySet<RoutingChoice> = new Set(tier);
  // Trap: a policy may work in place, and the tier is that of all requests.
  const given: unknown = policy.order([...tier], exchange);
  refusePromise(given, 'order');
  if (!Array.isArray(given)) throw new PluginMistake('order returned no list');
  const wanted = new Set((given as Choice[]).filter((choice) => known.has(choice)));
  for (const choice of tier) wanted.add(choice);
  return Array.from(wanted, ({ candidate }) => candidate);
}
