import { parseThinkTags } from '../schema/tolerant-rules.js';
import { shownValue } from '../../common/text/shown-value.js';
import { normalRoutePath } from '../schema/route-path-rule.js';
import { RouteUpstreamSection } from '../schema/route-upstream.section.js';
import type { RouteSection } from '../schema/route.section.js';
import { digestOf } from './build-access.js';
import { formatPath, type ConfigPath } from './config-path.js';
import type { ConsumerEntry } from './consumers-file.js';
import type { Findings } from './findings.js';
import { nearest } from './nearest.js';
import type { Entries, Entry } from './read-entries.js';

/** Checks what one consumer, route or upstream alone cannot know: things given twice, references, dead settings. */
export function checkAccess(entries: Entries, findings: Findings): void {
  const { consumers, routes } = entries;
  if (consumers !== null) {
    checkConsumers(consumers);
    // Where some could not be read, that is what is told.
    if (consumers.length === 0 && !findings.hasIn('consumers') && !findings.hasIn('consumers_file'))
      findings.warning([entries.consumersKey], 'there is no consumer, so every request is answered with 401');
    if (entries.server.metrics_token === undefined) {
      findings.warning(
        [],
        'GET /metrics is open and names all consumers, models and upstreams; set server.metrics_token',
      );
    }
  }
  warnOfSharedSecrets(entries, findings);
  if (routes !== null) checkRoutes(routes, entries, findings);
  if (consumers === null) warnOfOpenRoutes(entries, findings);
  warnOfDeadSettings(entries, findings);
}

function checkConsumers(consumers: readonly ConsumerEntry[]): void {
  const ids = new Map<string, ConsumerEntry>();
  const digests = new Map<string, { readonly entry: ConsumerEntry; readonly key: number }>();
  for (const entry of consumers) {
    const { section } = entry;
    const first = section.id === undefined ? undefined : ids.get(section.id);
    if (first !== undefined)
      entry.problem(
        ['id'],
        `"${shown(section.id)}" is already the id of ${first.place()}; choose another one`,
      );
    else if (section.id !== undefined) ids.set(section.id, entry);
    if (section.id === 'other')
      entry.warning(
        ['id'],
        '"other" also stands in metrics for all consumers beyond server.metrics_consumers; choose another id',
      );
    const keys = section.keys ?? [];
    if (keys.length === 0 && !entry.isWrong(['keys'])) {
      const which = section.id === undefined ? 'this consumer' : `the consumer "${shown(section.id)}"`;
      entry.warning([], `${which} has no key`);
    }
    const keyIds = new Set<string>();
    for (const [i, key] of keys.entries()) {
      // A list of something else was reported by its rule.
      if (!isObject(key)) continue;
      if (key.id !== undefined && keyIds.has(key.id))
        entry.problem(
          ['keys', i, 'id'],
          `"${shown(key.id)}" is already the id of another key of this consumer`,
        );
      else if (key.id !== undefined) keyIds.add(key.id);
      if (typeof key.value === 'string' && [key.id, section.id].includes(key.value.trim()))
        entry.warning(['keys', i], 'the key is an id of it as well; ids are logged, so choose another one');
      const digest = digestOf(key);
      if (digest === null) continue;
      const twin = digests.get(digest);
      if (twin !== undefined)
        entry.problem(
          ['keys', i],
          `is the same key as keys[${twin.key}] of ${twin.entry.place()}; each key belongs to one caller`,
        );
      else digests.set(digest, { entry, key: i });
    }
  }
}

function checkRoutes(routes: readonly Entry<RouteSection>[], entries: Entries, findings: Findings): void {
  const ids = new Map<string, number>();
  const paths = new Map<string, number>();
  const known = new Set((entries.upstreams ?? []).flatMap(({ section }) => section.id ?? []));
  for (const { index, section } of routes) {
    const here = ['routes', index] as const;
    firstOrProblem(ids, section.id, index, [...here, 'id'], findings);
    const path = typeof section.path === 'string' ? normalRoutePath(section.path) : undefined;
    firstOrProblem(paths, path, index, [...here, 'path'], findings);
    if (!Array.isArray(section.upstreams)) continue;
    checkRouteUpstreams(
      section.upstreams,
      [...here, 'upstreams'],
      entries.upstreams === null ? null : known,
      findings,
    );
  }
}

/** One secret for two purposes: who was given it for the one has the other. */
function warnOfSharedSecrets({ consumers, server }: Entries, findings: Findings): void {
  const tokens = new Map<string, string>();
  for (const name of ['metrics_token', 'admin_token'] as const) {
    const token = server[name];
    if (typeof token !== 'string' || token.trim() === '') continue;
    const digest = digestOf({ value: token }) ?? '';
    const twin = tokens.get(digest);
    if (twin === undefined) tokens.set(digest, `server.${name}`);
    else
      findings.warning(
        ['server', name],
        `is the same as ${twin}: whoever may read the metrics sees all of the back end; choose another one`,
      );
  }
  if (tokens.size === 0) return;
  for (const entry of consumers ?? [])
    for (const [i, key] of (entry.section.keys ?? []).entries()) {
      const token = tokens.get((isObject(key) ? digestOf(key) : null) ?? '');
      if (token !== undefined)
        entry.warning(
          ['keys', i],
          `is the same key as ${token}, so that each of them opens both; choose another one`,
        );
    }
}

/** A selector of callers, where nobody is asked who calls. */
function warnOfOpenRoutes({ routes }: Entries, findings: Findings): void {
  for (const { index, section } of routes ?? []) {
    if (typeof section.select?.consumers !== 'string') continue;
    findings.warning(
      ['routes', index, 'select', 'consumers'],
      'has no effect, since there are no "consumers": everybody may use this route',
    );
  }
}

function firstOrProblem(
  seen: Map<string, number>,
  value: string | undefined,
  index: number,
  path: ConfigPath,
  findings: Findings,
): void {
  if (value === undefined) return;
  const first = seen.get(value);
  if (first === undefined) seen.set(value, index);
  else
    findings.problem(
      path,
      `"${shown(value)}" is already the ${path.at(-1)} of routes[${first}]; choose another one`,
    );
}

function checkRouteUpstreams(
  upstreams: readonly unknown[],
  path: ConfigPath,
  known: ReadonlySet<string> | null,
  findings: Findings,
): void {
  const firstAt = new Map<string, number>();
  for (const [i, entry] of upstreams.entries()) {
    const long = entry instanceof RouteUpstreamSection;
    const id = long ? entry.upstream : entry;
    if (typeof id !== 'string' || id.trim() === '') continue;
    const here = long ? [...path, i, 'upstream'] : [...path, i];
    const first = firstAt.get(id);
    if (first !== undefined) {
      findings.problem(
        here,
        `the upstream "${shown(id)}" stands twice in this route (first as ${formatPath([...path, first])}); remove one`,
      );
      continue;
    }
    firstAt.set(id, i);
    if (known === null || known.has(id)) continue;
    const similar = nearest(id, known);
    const hint = similar === null ? '' : `; did you mean "${shown(similar.word)}"?`;
    findings.problem(here, `no upstream has the id "${shown(id)}"${hint}`);
  }
}

/** Some settings are for chat requests to upstreams that speak chat completions. */
function warnOfDeadSettings({ providers, upstreams }: Entries, findings: Findings): void {
  const providerOf = new Map((providers ?? []).map(({ section }) => [section.id, section]));
  for (const { index, section } of upstreams ?? []) {
    const provider = providerOf.get(section.provider);
    const protocols = [section.protocol ?? provider?.protocol ?? 'chat-completions'].flat();
    const serves = section.serves ?? ['chat'];
    if (protocols.includes('chat-completions') && serves.includes('chat')) continue;
    const set = [
      ...(isOn(section.think_tags ?? provider?.think_tags) ? ['think_tags'] : []),
      ...(provider?.reasoning_field === undefined ? [] : ['reasoning_field']),
    ];
    for (const name of set)
      findings.warning(
        ['upstreams', index],
        `${name} is set, but works only for chat requests to an upstream that speaks chat-completions`,
      );
  }
}

function isObject(key: unknown): boolean {
  return typeof key === 'object' && key !== null;
}

function isOn(thinkTags: unknown): boolean {
  const mode = parseThinkTags(thinkTags);
  return mode !== null && mode !== 'off';
}

function shown(text: string | undefined): string {
  return shownValue(text ?? '');
}
