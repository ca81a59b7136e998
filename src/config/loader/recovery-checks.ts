import { shownValue } from '../../common/text/shown-value.js';
import type { ProbeConfig } from '../gateway-config.js';
import { BackoffSection } from '../schema/backoff.section.js';
import type { ProbeSection } from '../schema/probe.section.js';
import type { ProviderSection } from '../schema/provider.section.js';
import type { UpstreamSection } from '../schema/upstream.section.js';
import { buildErrorRules } from './build-keys.js';
import type { ConfigPath } from './config-path.js';
import { durationOf } from './duration-setting.js';
import type { Findings } from './findings.js';
import type { Entries } from './read-entries.js';
import { backoffOf, probeOf } from './recovery-settings.js';

/** One upstream with its provider: what decides whether a key of either has any effect. */
interface Pair {
  readonly own: UpstreamSection;
  readonly provider: ProviderSection;
}

/** A provider or an upstream where keys are written, and the upstreams that these keys can reach. */
interface Place {
  readonly path: ConfigPath;
  readonly section: ProviderSection | UpstreamSection;
  /** Of an upstream: what its provider says. */
  readonly inherited: ProbeSection | undefined;
  readonly reached: readonly Pair[];
}

/**
 * Warns of keys of a rest and its end that have no effect, or one that surprises. Takes entries without a problem; what
 * it finds makes no file a wrong one.
 */
export function checkRecovery(entries: Entries, findings: Findings): void {
  for (const place of placesOf(entries)) {
    checkBackoff(place, findings);
    if (place.reached.length > 0) {
      checkUse(place, findings);
      checkProbe(place, findings);
    }
  }
}

function placesOf({ providers, upstreams }: Entries): Place[] {
  const provided = new Map(
    (providers ?? []).map(({ index, section }) => [section.id, { index, section, reached: [] as Pair[] }]),
  );
  const places: Place[] = [];
  for (const { index, section } of upstreams ?? []) {
    const provider = provided.get(section.provider);
    if (provider === undefined) continue;
    const pair = { own: section, provider: provider.section };
    provider.reached.push(pair);
    const inherited = provider.section.probe;
    places.push({ path: ['upstreams', index], section, inherited, reached: [pair] });
  }
  for (const { index, section, reached } of provided.values())
    places.push({ path: ['providers', index], section, inherited: undefined, reached });
  return places;
}

function checkBackoff({ path, section }: Place, findings: Findings): void {
  if (!(section.backoff instanceof BackoffSection)) return;
  const { base, cap } = section.backoff;
  const baseMs = durationOf(base)?.ms ?? 0;
  const capMs = durationOf(cap)?.ms;
  if (capMs !== undefined && baseMs > capMs)
    findings.warning([...path, 'backoff', 'base'], 'is longer than cap: every rest is as long as cap');
}

function checkUse({ path, section, reached }: Place, findings: Findings): void {
  const rests = reached.some(
    ({ own, provider }) =>
      backoffOf(own.backoff) !== null ||
      backoffOf(provider.backoff) !== null ||
      buildErrorRules(provider) !== null,
  );
  for (const key of ['recovery', 'probe'] as const) {
    if (section[key] !== undefined && !rests)
      findings.warning([...path, key], 'has no effect: nothing rests without a backoff; add backoff: PT5M');
  }
  if (section.probe === undefined || !rests) return;
  const probes = reached.some(({ own, provider }) =>
    ['probe', 'both'].includes(own.recovery ?? provider.recovery ?? 'probe'),
  );
  if (!probes)
    findings.warning([...path, 'probe'], 'has no effect: with this recovery no probes are sent; write both');
}

function checkProbe({ path, section, inherited, reached }: Place, findings: Findings): void {
  const { probe: written } = section;
  if (written === undefined) return;
  const effective = reached.map(({ own, provider }) => probeOf(own.probe, provider.probe));
  if (effective.every(({ mode }) => mode === 'completion')) {
    for (const key of ['path', 'expect'] as const) {
      if (written[key] !== undefined)
        findings.warning([...path, 'probe', key], 'has no effect: it belongs to mode: get');
    }
  }
  // Said once, where it comes from: at the provider, or at the upstream that makes it so.
  const result = probeOf(written, inherited);
  const said = inherited !== undefined && misleads(probeOf(undefined, inherited));
  if (said || !misleads(result) || !effective.some(misleads)) return;
  findings.warning(
    [...path, 'probe', ...(written.path === undefined ? [] : ['path'])],
    `${shownValue(result.path)} often answers while completions still fail; write wake: trial, so that a success only lets a request try`,
  );
}

function misleads({ mode, path, wake }: ProbeConfig): boolean {
  return mode === 'get' && wake === 'full' && listsModels(path);
}

/** `/v1/models` and its like: the list of a provider that can refuse each of them. */
function listsModels(path: string): boolean {
  return /\/(models|tags)(\/|$)/i.test(path.split('?', 1)[0] ?? '');
}
