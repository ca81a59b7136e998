import { parseDuration } from '../../common/time/duration.js';
import { shownValue } from '../../common/text/shown-value.js';
import { ModelEntrySection } from '../schema/model-entry.section.js';
import type { ModelSection } from '../schema/model.section.js';
import { duration } from '../schema/tolerant-rules.js';
import { normalUrl } from '../schema/url-rule.js';
import { formatPath, type ConfigPath } from './config-path.js';
import { durationOf } from './duration-setting.js';
import type { Findings } from './findings.js';
import { nearest } from './nearest.js';
import { isPlainObject } from './plain-object.js';
import { heartbeatOf, queueOf } from './queue-settings.js';
import type { Entries } from './read-entries.js';

/** What a section alone cannot know about slot groups, queues and heartbeats. */
export function checkQueues(entries: Entries, findings: Findings): void {
  checkGroups(entries, findings);
  warnOfSharedMachines(entries, findings);
  warnOfIdlePauses(entries, findings);
  for (const { index, section } of entries.models ?? []) checkModel(section, ['models', index], findings);
}

function checkGroups({ providers, slotGroups, upstreams }: Entries, findings: Findings): void {
  const used = new Set<string>();
  const refer = (id: string | null | undefined, path: ConfigPath) => {
    if (typeof id !== 'string') return;
    used.add(id);
    if (slotGroups === null || Object.hasOwn(slotGroups, id)) return;
    const similar = nearest(id, Object.keys(slotGroups));
    const hint = similar === null ? '' : `; did you mean "${shownValue(similar.word)}"?`;
    findings.problem(path, `no slot group has the id "${shownValue(id)}"; slot_groups lists them${hint}`);
  };
  for (const { index, section } of providers ?? [])
    refer(section.slot_group, ['providers', index, 'slot_group']);
  for (const { index, section } of upstreams ?? [])
    refer(section.slot_group, ['upstreams', index, 'slot_group']);
  for (const [id, group] of Object.entries(slotGroups ?? {})) {
    const path = ['slot_groups', id];
    if (!used.has(id)) findings.warning(path, `the slot group "${shownValue(id)}" is used by no upstream`);
    if (!isPlainObject(group) || group['settle'] === undefined || group['settle'] === null) continue;
    for (const { message } of duration.check(group['settle'])) findings.warning([...path, 'settle'], message);
  }
}

/** One machine behind two groups, or behind one and none: the groups would not mean the machine. */
function warnOfSharedMachines(entries: Entries, findings: Findings): void {
  const providers = new Map((entries.providers ?? []).map(({ section }) => [section.id, section]));
  const firstAt = new Map<string, { group: string | null; index: number }>();
  const warned = new Set<string>();
  for (const { index, section } of entries.upstreams ?? []) {
    const provider = providers.get(section.provider);
    if (typeof provider?.url !== 'string') continue;
    const url = normalUrl(provider.url);
    const group = (section.slot_group === undefined ? provider.slot_group : section.slot_group) ?? null;
    const first = firstAt.get(url);
    if (first === undefined) firstAt.set(url, { group, index });
    else if (first.group !== group && !warned.has(url)) {
      warned.add(url);
      const other = formatPath(['upstreams', first.index]);
      findings.warning(
        ['upstreams', index],
        `has the base url of ${other} but is ${inGroup(group)}, while that is ${inGroup(first.group)}: they do not share their slots`,
      );
    }
  }
}

function warnOfIdlePauses({ providers, upstreams }: Entries, findings: Findings): void {
  const ofProvider = new Map((providers ?? []).map(({ section }) => [section.id, section]));
  for (const { index, section } of upstreams ?? []) {
    const inherited = ofProvider.get(section.provider);
    const limit =
      section.max_concurrency === undefined ? inherited?.max_concurrency : section.max_concurrency;
    const group = section.slot_group === undefined ? inherited?.slot_group : section.slot_group;
    if ((durationOf(section.settle)?.ms ?? 0) === 0 || (limit ?? 0) !== 0 || (group ?? null) !== null)
      continue;
    findings.warning(
      ['upstreams', index, 'settle'],
      'has no effect without a limit or a slot group: nothing waits for this upstream',
    );
  }
}

function inGroup(group: string | null): string {
  return group === null ? 'in no slot group' : `in the slot group "${shownValue(group)}"`;
}

function checkModel(section: ModelSection, path: ConfigPath, findings: Findings): void {
  const queue = queueOf(section.queue);
  const warn = (key: readonly string[], message: string) => findings.warning([...path, ...key], message);
  if (queue !== null && queue.ageingMs > 0 && queue.ageingMs >= queue.waitMs)
    warn(['queue', 'ageing'], 'is not shorter than wait, so no request ever waits that long');
  const every = section.heartbeat?.every;
  if (typeof every === 'string' && parseDuration(every.trim()) === 0) {
    const { everyMs } = heartbeatOf(section.heartbeat) ?? { everyMs: 0 };
    warn(['heartbeat', 'every'], `must be more than nothing; ${everyMs} ms are used`);
  }
  if (!Array.isArray(section.upstreams)) return;
  for (const [i, entry] of section.upstreams.entries()) {
    if (!(entry instanceof ModelEntrySection)) continue;
    for (const key of ['spill_after', 'spill_min_priority'] as const) {
      if (entry[key] !== undefined && queue === null)
        findings.problem(
          [...path, 'upstreams', i, key],
          `needs a queue: without one nobody waits; add queue: {} to the model`,
        );
    }
    const after = durationOf(entry.spill_after);
    if (after === null || queue === null) continue;
    const here = ['upstreams', i, 'spill_after'] as const;
    if (i === 0)
      findings.warning([...path, ...here], 'has no effect on the first entry: nothing is before it');
    else if (after.ms >= queue.waitMs)
      findings.warning(
        [...path, ...here],
        'is not shorter than queue.wait, so no request ever waits that long',
      );
  }
}
