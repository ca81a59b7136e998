import type { AffinityService } from '../affinity/affinity.service.js';
import type { Place, Recollection } from '../affinity/affinity.registry.js';
import type { AffinityOutcome } from '../observability/metrics/gateway.metrics.js';
import type { Candidate } from '../routing/candidate.js';
import type { Plan } from '../routing/plan.js';

/**
 * What ties one request to the upstream that served its conversation before. Made with the plan of a model with
 * affinity, lives as long as the exchange; remembers a new place only when the request was served.
 */
export class Attachment {
  readonly #place: Place | null;
  #outcome: AffinityOutcome | null = null;

  constructor(
    private readonly affinity: AffinityService,
    private readonly recollection: Recollection | null,
    /** The candidate at that place; null where there is none, or none any more. */
    readonly home: Candidate | null,
    /** Whether the client is told. */
    readonly told: boolean,
  ) {
    this.#place = home === null ? null : (recollection?.place ?? null);
  }

  /** Id of the key to begin with at this upstream; null for any. */
  keyAt({ upstream }: Candidate): string | null {
    return upstream.id === this.#place?.upstream ? this.#place.key : null;
  }

  outcomeOf({ upstream }: Candidate, key: string | null): AffinityOutcome {
    if (this.#place === null) return 'new';
    return upstream.id === this.#place.upstream && key === this.#place.key ? 'hit' : 'moved';
  }

  /** Null as long as nobody answered. */
  get outcome(): AffinityOutcome | null {
    return this.#outcome;
  }

  /** It is this one whose answer the client gets. The first one counts, also where another goes on with its answer. */
  answered(candidate: Candidate, key: string | null): void {
    this.#outcome ??= this.outcomeOf(candidate, key);
  }

  served({ upstream }: Candidate, key: string | null): void {
    if (this.recollection !== null) this.affinity.remember(this.recollection, { upstream: upstream.id, key });
  }
}

/** The candidate at this place, which stands before the others of its tier in the returned plan. */
export function homeward(
  plan: Plan,
  place: Place | null,
): { readonly plan: Plan; readonly home: Candidate | null } {
  const { candidates } = plan;
  const at = place === null ? -1 : candidates.findIndex(({ upstream }) => upstream.id === place.upstream);
  const home = candidates[at];
  if (home === undefined) return { plan, home: null };
  // Towards an entry that is to be used late only nobody is led: a conversation that spilled once comes home.
  if ((home.entry.spill?.afterMs ?? 0) > 0) return { plan, home };
  const first = candidates.findIndex(({ entry }) => entry.tier === home.entry.tier);
  if (first === at) return { plan, home };
  const others = candidates.filter((candidate) => candidate !== home);
  return { plan: { ...plan, candidates: others.toSpliced(first, 0, home) }, home };
}
