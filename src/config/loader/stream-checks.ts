import { parseDuration } from '../../common/time/duration.js';
import { ModelEntrySection } from '../schema/model-entry.section.js';
import type { ConfigPath } from './config-path.js';
import type { Findings } from './findings.js';
import type { Entries } from './read-entries.js';

/** Reasoning models are silent that long between two bytes without being broken. */
const SHORT_IDLE_MS = 10_000;

/** Warns of settings for streams and conversations that do what they say, but hardly what was meant. */
export function checkStreams(entries: Entries, findings: Findings): void {
  const { providers, upstreams, models } = entries;
  for (const { index, section } of providers ?? [])
    checkIdle(section.idle_timeout, ['providers', index, 'idle_timeout'], findings);
  for (const { index, section } of upstreams ?? [])
    checkIdle(section.idle_timeout, ['upstreams', index, 'idle_timeout'], findings);
  const ofProvider = new Map((providers ?? []).map(({ section }) => [section.id, section.prefill]));
  const prefilled = new Set<unknown>();
  for (const { section } of upstreams ?? []) {
    if ((section.prefill ?? ofProvider.get(section.provider) ?? false) !== false) prefilled.add(section.id);
  }
  for (const { index, section } of models ?? []) {
    if (section.affinity_wait !== undefined && section.affinity !== 'session')
      findings.warning(['models', index, 'affinity_wait'], 'has no effect without affinity: session');
    if (section.on_interrupt !== 'continue' || !Array.isArray(section.upstreams)) continue;
    const ids = section.upstreams.map((entry) =>
      entry instanceof ModelEntrySection ? entry.upstream : entry,
    );
    // Whoever broke off cannot be the one that goes on.
    if (new Set(ids).size > 1 && ids.some((id) => prefilled.has(id))) continue;
    const wanted = 'continue needs a second upstream in this model, one that is declared prefill: true';
    findings.warning(['models', index, 'on_interrupt'], `${wanted}; as it is, a break stays an error`);
  }
}

function checkIdle(written: unknown, path: ConfigPath, findings: Findings): void {
  const ms = typeof written === 'string' ? parseDuration(written.trim()) : null;
  if (ms === null || ms === 0 || ms >= SHORT_IDLE_MS) return;
  findings.warning(
    path,
    'is under PT10S; a model that thinks between two words may be cut off, PT30S or more is usual',
  );
}
