import { ModelSection } from '../schema/model.section.js';
import { PluginSection } from '../schema/plugin.section.js';
import { ProviderSection } from '../schema/provider.section.js';
import { RootSection } from '../schema/root.section.js';
import { ServerSection } from '../schema/server.section.js';
import { StateSection } from '../schema/state.section.js';
import { UpstreamSection } from '../schema/upstream.section.js';
import { ConsumerSection } from '../schema/consumer.section.js';
import { RouteSection } from '../schema/route.section.js';
import type { Origin } from './build-config.js';
import { ConsumerEntry, readConsumersFile } from './consumers-file.js';
import type { Findings } from './findings.js';
import { isPlainObject, type PlainObject } from './plain-object.js';
import { SectionReader } from './section-reader.js';
import type { Environment } from './substitution.js';

/** One entry of a list, with its place there. */
export interface Entry<T> {
  readonly index: number;
  readonly section: T;
}

/** The file as section instances. A list is null where the file has none that could be read. */
export interface Entries {
  readonly server: ServerSection;
  readonly providers: readonly Entry<ProviderSection>[] | null;
  readonly upstreams: readonly Entry<UpstreamSection>[] | null;
  readonly models: readonly Entry<ModelSection>[] | null;
  /** Of the file and of the file it names; null where it has neither key. */
  readonly consumers: readonly ConsumerEntry[] | null;
  /** What the file says about consumers at all stands here. */
  readonly consumersKey: 'consumers' | 'consumers_file';
  readonly routes: readonly Entry<RouteSection>[] | null;
  readonly plugins: readonly Entry<PluginSection>[];
  readonly disable: readonly string[];
  readonly defaultModel: string | null;
  /** As written, also where some of them are wrong: a reference to one is not. Null where they could not be read. */
  readonly slotGroups: PlainObject | null;
  readonly state: StateSection;
}

export function readEntries(
  root: PlainObject,
  origin: Origin,
  findings: Findings,
  environment: Environment,
): Entries {
  const file = new SectionReader(findings, environment).read(RootSection, root, []);
  const list = <T extends object>(Section: new () => T, items: unknown): Entry<T>[] | null => {
    if (!Array.isArray(items)) return null;
    return items.flatMap((item: unknown, index) =>
      item instanceof Section ? [{ index, section: item }] : [],
    );
  };
  return {
    server: file.server instanceof ServerSection ? file.server : new ServerSection(),
    providers: list(ProviderSection, file.providers),
    upstreams: list(UpstreamSection, file.upstreams),
    models: list(ModelSection, file.models),
    consumers: consumersOf(file, origin, findings, environment),
    consumersKey: 'consumers_file' in root && !('consumers' in root) ? 'consumers_file' : 'consumers',
    routes: list(RouteSection, file.routes),
    plugins: list(PluginSection, file.plugins) ?? [],
    disable: file.disable ?? [],
    defaultModel: file.default_model ?? null,
    state: file.state instanceof StateSection ? file.state : new StateSection(),
    slotGroups: groupsOf(root['slot_groups'] ?? {}),
  };
}

function groupsOf(written: unknown): PlainObject | null {
  return isPlainObject(written) ? written : null;
}

function consumersOf(
  file: RootSection,
  origin: Origin,
  findings: Findings,
  environment: Environment,
): ConsumerEntry[] | null {
  const { consumers: listed, consumers_file: name } = file;
  if (listed === undefined && name === undefined) return null;
  const own = (listed ?? []).flatMap((section, index): ConsumerEntry[] => {
    if (!(section instanceof ConsumerSection)) return [];
    return [new ConsumerEntry(section, findings, ['consumers', index], `consumers[${index}]`)];
  });
  return typeof name === 'string' ? [...own, ...readConsumersFile(name, origin, findings, environment)] : own;
}
