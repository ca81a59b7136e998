import type { Candidate } from '../routing/candidate.js';
import type { Absent, Plan } from '../routing/plan.js';
import { isClosed, opensMs } from '../upstreams/concurrency/claimable.js';
import { shownSlots } from '../upstreams/upstream.js';

/** One candidate as it stands at this moment. */
interface ExplainedCandidate {
  readonly upstream: string;
  readonly provider: string;
  readonly real_model: string;
  readonly tier: number;
  /** `take`: the request would go here. `standby`: it would, if those before it failed. */
  readonly decision: 'take' | 'standby' | 'skip';
  readonly reason: string;
  /** Held and limit, its own and its group's. */
  readonly slots: string;
  /** Where it is closed: until it opens by itself; null = not by itself. */
  readonly opens_in_ms?: number | null;
}

/** What a request would meet now, sent nowhere; behind its candidates those that are none for it. */
export function explanation(plan: Plan, absent: readonly Absent[], now: number): object {
  const { model } = plan;
  const candidates = plan.candidates.map((candidate) => ({ candidate, why: closedReason(candidate, now) }));
  const healthy = candidates.findIndex(({ candidate, why }) => why === null && !isClosed(candidate, now));
  const taken = healthy >= 0 ? healthy : candidates.findIndex(({ why }) => why === null);
  return {
    object: 'explanation',
    model: model.name,
    order: model.order,
    max_attempts: plan.maxAttempts === Infinity ? null : plan.maxAttempts,
    candidates: [
      ...candidates.map(({ candidate, why }, i): ExplainedCandidate => {
        const open = isClosed(candidate, now) ? 'a trial of an upstream that rests' : 'free and healthy';
        if (why === null)
          return { ...placeOf(candidate), decision: i === taken ? 'take' : 'standby', reason: open };
        const ms = opensMs(candidate, now);
        const wait = ms === 0 ? {} : { opens_in_ms: ms === Infinity ? null : Math.ceil(ms) };
        return { ...placeOf(candidate), decision: 'skip', reason: why, ...wait };
      }),
      ...[...plan.leftOut, ...absent].map(({ candidate, reason }): ExplainedCandidate => ({
        ...placeOf(candidate),
        decision: 'skip',
        reason,
      })),
    ],
  };
}

/** Null: it may be tried. */
function closedReason(candidate: Candidate, now: number): string | null {
  const { entry, gates, upstream } = candidate;
  const gate = gates?.find((one) => one.closedMs() > 0);
  if (gate !== undefined) return gate.reason;
  if (upstream.opensMs(now) > 0) return 'cooling';
  if (!(upstream.seat ?? upstream.slots).free) return 'busy';
  return entry.spill === null ? null : 'spill';
}

function placeOf({ entry, upstream }: Candidate) {
  const { config } = upstream;
  return {
    upstream: upstream.id,
    provider: config.provider.id,
    real_model: config.model,
    tier: entry.tier,
    slots: shownSlots(upstream),
  };
}
