import type { IncomingHttpHeaders } from 'node:http';
import { LabelSelector } from '../common/selector/label-selector.js';
import { SelectorSyntaxError } from '../common/selector/selector-syntax-error.js';
import { noCandidates } from '../common/errors/catalogue.js';
import type { Plan, LeftOut } from './plan.js';
import type { Candidate } from './candidate.js';
import type { SkipReason } from '../contracts/gate.js';

const TIER = 'x-llm-proxy-tier';
const PROVIDERS = 'x-llm-proxy-providers';
const TAGS = 'x-llm-proxy-tags';

/**
 * Narrows a plan to what the client's hint headers leave. Throws a 400 for one that cannot be read, or when nothing is
 * left; the very plan where there is no hint.
 */
export function narrowed(plan: Plan, headers: Readonly<IncomingHttpHeaders>): Plan {
  let result = plan;
  const tier = headers[TIER];
  if (tier !== undefined) {
    const lowest = tierOf(tier);
    result = keep(result, TIER, 'tier', ({ entry }) => entry.tier >= lowest);
  }
  const providers = headers[PROVIDERS];
  if (providers !== undefined) {
    const ids = listOf(providers);
    result = keep(result, PROVIDERS, 'hint', ({ upstream }) => isNamed(upstream.config.provider.id, ids));
  }
  const tags = headers[TAGS];
  if (tags !== undefined) {
    const wanted = tagsOf(tags);
    result = keep(result, TAGS, 'hint', ({ upstream }) => wanted.matches(upstream.config.labels));
  }
  return result;
}

function keep(
  plan: Plan,
  header: string,
  reason: SkipReason,
  wanted: (candidate: Candidate) => boolean,
): Plan {
  const candidates = plan.candidates.filter(wanted);
  if (candidates.length === 0) throw noCandidates(header, 'leaves no upstream for this model');
  const leftOut: LeftOut[] = plan.candidates
    .filter((candidate) => !wanted(candidate))
    .map((candidate) => ({ candidate, reason }));
  return { ...plan, candidates, leftOut: [...plan.leftOut, ...leftOut] };
}

function tierOf(value: string | string[]): number {
  const text = String(value).trim();
  const tier = /^-?\d{1,15}$/.test(text) ? Number(text) : NaN;
  if (Number.isNaN(tier)) throw noCandidates(TIER, 'must be one whole number');
  return tier;
}

function listOf(value: string | string[]): ReadonlySet<string> {
  const ids = String(value)
    .split(',')
    .flatMap((id) => [id.trim(), id.trim().replace(/%[0-9a-f]{2}/gi, (escape) => escape.toUpperCase())])
    .filter((id) => id !== '');
  if (ids.length === 0) throw noCandidates(PROVIDERS, 'must be a list of provider ids, such as a,b');
  return new Set(ids);
}

/** As it is, or as our own headers show it where a header cannot hold it as it is. */
function isNamed(id: string, ids: ReadonlySet<string>): boolean {
  return ids.has(id) || ids.has(encodeURIComponent(id.toWellFormed()));
}

/** `k=v`, several joined by commas: what selects labels, without its negative forms. */
function tagsOf(value: string | string[]): LabelSelector {
  const unreadable = noCandidates(TAGS, 'must be labels with their values, such as region=eu,tier=gold');
  try {
    const selector = LabelSelector.parse(String(value));
    const { requirements } = selector;
    if (requirements.length > 0 && requirements.every(({ operator }) => operator === 'in')) return selector;
  } catch (error) {
    if (!(error instanceof SelectorSyntaxError)) throw error;
  }
  throw unreadable;
}
