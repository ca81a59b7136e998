import type { AttemptRecord } from '../contracts/exchange.js';
import type { SkipReason } from '../contracts/gate.js';
import type { Candidate } from '../routing/candidate.js';
import type { AbsentReason, Plan } from '../routing/plan.js';

/** One candidate in `error.attempts` of a model that has tiers, quotas or an order. */
export interface CandidateLine {
  readonly upstream: string;
  readonly provider: string;
  readonly key?: string;
  readonly tier: number;
  readonly result?: string;
  readonly status?: number;
  readonly skipped?: SkipReason | OwnReason;
}

type OwnReason = 'max_attempts' | 'spill';

/** Why a candidate can be passed by, in the order in which it is looked at; docs/routing.md holds the same table. */
export const SKIP_REASONS: Readonly<Record<SkipReason | OwnReason | AbsentReason, string>> = {
  tier: 'the client asked for tiers from another one on (`x-llm-proxy-tier`)',
  hint: 'the client named other providers or labels (`x-llm-proxy-providers`, `x-llm-proxy-tags`)',
  cooling: 'it rests after failures, and takes no trial now',
  no_key: 'no key of its provider can be used now',
  quota: 'a quota of the provider, the key, the upstream or the entry is used up',
  busy: 'its slots, or those of its group, are taken',
  spill: 'its time has not come yet (`spill_after`), or the priority is too low (`spill_min_priority`)',
  max_attempts: 'it could serve, but the request had no attempt or no time left',
  disabled: 'it, or its provider, is disabled (in explanations only, as the reasons below)',
  route: 'the route does not name it, or a selector of the route leaves it out',
  serves: 'it does not serve what is asked (`serves`)',
  protocol: 'it does not speak what is asked (`protocol`)',
  issued: 'an id in the request was issued by another upstream',
};

/** What became of every candidate of a plan, in its order; then those that the request had ruled out. */
export function candidateReport(
  plan: Plan,
  attempts: readonly AttemptRecord[],
  now: number,
): readonly CandidateLine[] {
  const lines = plan.candidates.map((candidate): CandidateLine => {
    const last = attempts.findLast(({ upstream }) => upstream === candidate.upstream.id);
    if (last === undefined) return { ...placeOf(candidate), skipped: reasonOf(candidate, now) };
    const { key, result, status } = last;
    return {
      ...placeOf(candidate),
      ...(key === undefined ? {} : { key }),
      result,
      ...(status === undefined ? {} : { status }),
    };
  });
  return [
    ...lines,
    ...plan.leftOut.map(({ candidate, reason }) => ({ ...placeOf(candidate), skipped: reason })),
  ];
}

function placeOf({ entry, upstream }: Candidate) {
  return { upstream: upstream.id, provider: upstream.config.provider.id, tier: entry.tier };
}

function reasonOf({ entry, gates, upstream }: Candidate, now: number): SkipReason | OwnReason {
  if (upstream.restingMs(now) > 0) return 'cooling';
  const closed = gates?.find((gate) => gate.closedMs() > 0);
  if (closed !== undefined) return closed.reason;
  if (!(upstream.seat ?? upstream.slots).free) return 'busy';
  return entry.spill === null ? 'max_attempts' : 'spill';
}
