import type { AttemptRecord } from '../contracts/exchange.js';
import type { SkipReason } from '../contracts/gate.js';
import type { Candidate } from '../routing/candidate.js';
import type { Plan } from '../routing/plan.js';

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

/** `spill`: the entry was not to be used yet, or not for a request of this priority. */
type OwnReason = 'max_attempts' | 'spill';

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
