import { shownValue } from '../../common/text/shown-value.js';
import { ModelEntrySection } from '../schema/model-entry.section.js';
import { formatPath, type ConfigPath } from './config-path.js';
import type { Findings } from './findings.js';
import { nearest } from './nearest.js';
import type { Entries, Entry } from './read-entries.js';

/** Suggestions cost one comparison for each known id: a file full of wrong ids gets them for the first few. */
const MAX_SUGGESTIONS = 50;

/** Checks what one section alone cannot know: ids given twice, ids that do not exist, entries that nobody uses. */
export function checkReferences(entries: Entries, findings: Findings, policies: readonly string[]): void {
  const check = new ReferenceCheck(findings);
  const { providers, upstreams, models } = entries;
  const providerIds = check.unique(providers, 'providers', 'id', (provider) => provider.id);
  const upstreamIds = check.unique(upstreams, 'upstreams', 'id', (upstream) => upstream.id);
  const modelNames = check.unique(models, 'models', 'name', (model) => model.name);
  if (models !== null && entries.defaultModel !== null)
    check.exists(entries.defaultModel, modelNames, 'model', ['default_model'], 'name');
  checkOrders(entries, findings, policies);
  if (entries.server.direct === true) checkDirectIds(entries, findings);
  const usedProviders = new Set<string>();
  const usedUpstreams = new Set<string>();
  for (const { index, section } of upstreams ?? []) {
    if (section.provider === undefined) continue;
    usedProviders.add(section.provider);
    // Without a readable list every reference would be wrong: that the list is missing is said already.
    if (providers !== null)
      check.exists(section.provider, providerIds, 'provider', ['upstreams', index, 'provider']);
  }
  for (const { index, section } of models ?? []) {
    if (!Array.isArray(section.upstreams)) continue;
    checkModel(section.upstreams, ['models', index, 'upstreams'], usedUpstreams, findings, (id, path) => {
      if (upstreams !== null) check.exists(id, upstreamIds, 'upstream', path);
    });
  }
  // What uses it may stand where something else was found to be wrong.
  if (upstreams?.every(({ section }) => section.provider !== undefined))
    check.unused(providerIds, usedProviders, 'provider', 'upstream', 'providers');
  if (models?.every(({ section }) => Array.isArray(section.upstreams)))
    check.unused(upstreamIds, usedUpstreams, 'upstream', 'model', 'upstreams');
}

function checkModel(
  entries: readonly unknown[],
  path: ConfigPath,
  used: Set<string>,
  findings: Findings,
  exists: (id: string, path: ConfigPath) => void,
): void {
  const firstAt = new Map<string, { index: number; long: boolean }>();
  for (const [i, entry] of entries.entries()) {
    // The same upstream may stand in several entries, with different quotas, if none of them is a plain id.
    const long = entry instanceof ModelEntrySection;
    const id = long ? entry.upstream : entry;
    if (typeof id !== 'string' || id.trim() === '') continue;
    used.add(id);
    const first = firstAt.get(id);
    if (first === undefined) {
      firstAt.set(id, { index: i, long });
      exists(id, long ? [...path, i, 'upstream'] : [...path, i]);
    } else if (!long || !first.long) {
      findings.problem(
        [...path, i],
        `the upstream "${shownValue(id)}" stands twice in this model (first as ${formatPath([...path, first.index])}); remove one`,
      );
    }
  }
}

/** Names of routing policies; a plugin of the file may bring others, which are checked when it is loaded. */
function checkOrders({ models, plugins }: Entries, findings: Findings, policies: readonly string[]): void {
  if (plugins.length > 0 || findings.hasIn('plugins')) return;
  for (const { index, section } of models ?? []) {
    const { order } = section;
    if (order === undefined || policies.includes(order)) continue;
    const similar = nearest(order, policies);
    const hint = similar === null ? '' : `; did you mean "${similar.word}"?`;
    findings.problem(
      ['models', index, 'order'],
      `no routing policy has the name "${shownValue(order)}"${hint} (known: ${policies.join(', ')})`,
    );
  }
}

/** `provider/model` and `provider:model` must be told apart from the id, and ids stand in lists of headers. */
function checkDirectIds({ providers }: Entries, findings: Findings): void {
  for (const { index, section } of providers ?? []) {
    const odd = /[/:,=]/.exec(section.id ?? '')?.[0];
    if (odd !== undefined)
      findings.problem(
        ['providers', index, 'id'],
        `an id must not hold "${odd}" while server.direct is true; choose another one`,
      );
  }
}

class ReferenceCheck {
  #suggestions = 0;

  constructor(private readonly findings: Findings) {}

  /** Reports ids given twice; returns each id with the place of its first entry. */
  unique<T>(
    entries: readonly Entry<T>[] | null,
    list: string,
    key: string,
    idOf: (section: T) => string | undefined,
  ): ReadonlyMap<string, number> {
    const firstAt = new Map<string, number>();
    for (const { index, section } of entries ?? []) {
      const id = idOf(section);
      if (id === undefined) continue;
      const first = firstAt.get(id);
      if (first === undefined) {
        firstAt.set(id, index);
        continue;
      }
      const line = this.findings.lineOf([list, first, key]);
      const place = `${formatPath([list, first])}${line === null ? '' : ` (line ${line})`}`;
      this.findings.problem(
        [list, index, key],
        `"${shownValue(id)}" is already the ${key} of ${place}; choose another one`,
      );
    }
    return firstAt;
  }

  exists(
    id: string,
    known: ReadonlyMap<string, number>,
    what: string,
    path: ConfigPath,
    called = 'id',
  ): void {
    if (known.has(id)) return;
    const similar = this.#suggestions++ < MAX_SUGGESTIONS ? nearest(id, known.keys()) : null;
    const hint = similar === null ? '' : `; did you mean "${shownValue(similar.word)}"?`;
    this.findings.problem(path, `no ${what} has the ${called} "${shownValue(id)}"${hint}`);
  }

  unused(
    known: ReadonlyMap<string, number>,
    used: ReadonlySet<string>,
    what: string,
    user: string,
    list: string,
  ): void {
    for (const [id, index] of known) {
      if (!used.has(id))
        this.findings.warning([list, index], `the ${what} "${shownValue(id)}" is used by no ${user}`);
    }
  }
}
