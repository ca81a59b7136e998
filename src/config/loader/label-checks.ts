import { LabelSelector } from '../../common/selector/label-selector.js';
import { shownValue } from '../../common/text/shown-value.js';
import type { ConfigPath } from './config-path.js';
import { nearest } from './nearest.js';
import type { Findings } from './findings.js';
import type { Entries } from './read-entries.js';

type Kind = 'routes' | 'models' | 'upstreams' | 'consumers';

const BUILT_IN: Readonly<Record<Kind, readonly string[]>> = {
  routes: ['sys/route'],
  models: ['sys/model'],
  upstreams: ['sys/provider', 'sys/upstream', 'sys/protocol', 'sys/model'],
  consumers: ['sys/consumer', 'sys/key'],
};

const KINDS = Object.keys(BUILT_IN) as readonly Kind[];

/**
 * Warns of selectors that name a label which nobody carries: a slip in `!preveiw` would open everything. Each label is
 * told once, at its first place.
 */
export function checkSelectors(entries: Entries, findings: Findings): void {
  const carried = carriedLabels(entries);
  const told = new Set<string>();
  // Thousands of consumers share a few selectors.
  const looked = new Set<string>();
  const check = (kind: Kind, text: unknown, warn: (message: string) => void): void => {
    if (typeof text !== 'string' || looked.has(`${kind} ${text}`)) return;
    looked.add(`${kind} ${text}`);
    // Where there are no consumers the whole selector is dead, and told as that.
    if (kind === 'consumers' && entries.consumers === null) return;
    for (const key of keysOf(text)) {
      if (carried[kind].has(key) || told.has(`${kind} ${key}`)) continue;
      told.add(`${kind} ${key}`);
      const similar = nearest(key, carried[kind]);
      const hint = similar?.close === true ? `; did you mean "${shownValue(similar.word)}"?` : '';
      warn(`none of the ${kind} carries the label "${shownValue(key)}"${hint}`);
    }
  };
  const select = (
    section: Readonly<Partial<Record<Kind, unknown>>> | undefined,
    warn: (at: ConfigPath, message: string) => void,
  ): void => {
    if (section === undefined) return;
    for (const kind of KINDS) check(kind, section[kind], (message) => warn(['select', kind], message));
  };
  for (const { index, section } of entries.routes ?? [])
    select(section.select as Partial<Record<Kind, unknown>>, (at, message) =>
      findings.warning(['routes', index, ...at], message),
    );
  for (const entry of entries.consumers ?? []) {
    const { section } = entry;
    select(section.select as Partial<Record<Kind, unknown>>, (at, message) => entry.warning(at, message));
    for (const [i, key] of (section.keys ?? []).entries())
      select(key?.select as Partial<Record<Kind, unknown>>, (at, message) =>
        entry.warning(['keys', i, ...at], message),
      );
  }
}

function carriedLabels(entries: Entries): Readonly<Record<Kind, ReadonlySet<string>>> {
  const carried = (kind: Kind, labels: Iterable<Readonly<Record<string, string>> | undefined>) => {
    const keys = new Set(BUILT_IN[kind]);
    for (const some of labels) for (const key in some) keys.add(key);
    return keys;
  };
  const { providers, upstreams, models, routes, consumers } = entries;
  const labelsOf = (list: readonly { section: { labels?: Record<string, string> } }[] | null) =>
    (list ?? []).map(({ section }) => section.labels);
  const ofCallers = new Set(BUILT_IN.consumers);
  const collect = (labels: Readonly<Record<string, string>> | undefined): void => {
    if (labels !== undefined) for (const key of Object.keys(labels)) ofCallers.add(key);
  };
  for (const { section } of consumers ?? []) {
    collect(section.labels);
    for (const key of section.keys ?? []) collect(key?.labels);
  }
  return {
    routes: carried('routes', labelsOf(routes)),
    models: carried('models', labelsOf(models)),
    upstreams: carried('upstreams', [...labelsOf(providers), ...labelsOf(upstreams)]),
    consumers: ofCallers,
  };
}

/** The labels a selector names. What is no selector was reported and taken out by its rule. */
function keysOf(text: string): readonly string[] {
  return LabelSelector.parse(text).requirements.map(({ key }) => key);
}
