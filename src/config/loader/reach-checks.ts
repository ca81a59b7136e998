import { UNSPOKEN, type Protocol } from '../access-config.js';
import { ModelEntrySection } from '../schema/model-entry.section.js';
import { RouteUpstreamSection } from '../schema/route-upstream.section.js';
import { shownValue } from '../../common/text/shown-value.js';
import { listOf } from './build-access.js';
import type { Findings } from './findings.js';
import type { Entries } from './read-entries.js';

/** What decides whether an upstream can ever be asked. */
interface Reach {
  readonly enabled: boolean;
  /** Whether it speaks anything that is spoken here. */
  readonly spoken: boolean;
}

/** Warns of what nobody can ever reach. Takes entries without a problem; what it finds makes no file a wrong one. */
export function checkReach(entries: Entries, findings: Findings): void {
  const upstreams = reachesOf(entries);
  warnOfMuteModels(entries, upstreams, findings);
  warnOfDefault(entries, upstreams, findings);
  if (entries.server.direct === true) return;
  warnOfRoutes(entries, upstreams, findings);
  for (const entry of entries.consumers ?? []) {
    if (entry.section.direct === true) entry.warning(['direct'], 'has no effect without server.direct: true');
  }
}

function reachesOf({ providers, upstreams }: Entries): ReadonlyMap<string | undefined, Reach> {
  const provided = new Map((providers ?? []).map(({ section }) => [section.id, section]));
  return new Map(
    (upstreams ?? []).map(({ section }) => {
      const provider = provided.get(section.provider);
      const protocols = listOf<Protocol>(section.protocol ?? provider?.protocol, 'chat-completions');
      const enabled = section.disabled !== true && provider?.disabled !== true;
      return [section.id, { enabled, spoken: protocols.some((protocol) => !UNSPOKEN.has(protocol)) }];
    }),
  );
}

/** Ids of the upstreams of a list, each as a text or as a section. */
function idsOf(list: readonly unknown[] | undefined): (string | undefined)[] {
  return (list ?? []).map((entry) =>
    entry instanceof ModelEntrySection || entry instanceof RouteUpstreamSection
      ? entry.upstream
      : (entry as string),
  );
}

function warnOfMuteModels(
  { models }: Entries,
  upstreams: ReadonlyMap<string | undefined, Reach>,
  findings: Findings,
): void {
  for (const { index, section } of models ?? []) {
    const reaches = idsOf(section.upstreams).map((id) => upstreams.get(id));
    const enabled = reaches.filter((reach) => reach?.enabled === true);
    if ((enabled.length > 0 ? enabled : reaches).some((reach) => reach?.spoken === true)) continue;
    const mute = [...UNSPOKEN].join(' and ');
    findings.warning(
      ['models', index, 'upstreams'],
      `none of them can answer anything: ${mute} are not spoken yet`,
    );
  }
}

function warnOfDefault(
  { defaultModel, models }: Entries,
  upstreams: ReadonlyMap<string | undefined, Reach>,
  findings: Findings,
): void {
  const section = models?.find((model) => model.section.name === defaultModel)?.section;
  if (defaultModel === null || section === undefined) return;
  const enabled = idsOf(section.upstreams).some((id) => upstreams.get(id)?.enabled === true);
  if (section.disabled !== true && enabled) return;
  const why = section.disabled === true ? 'is disabled' : 'has no upstream that is not disabled';
  findings.warning(
    ['default_model'],
    `the model "${shownValue(defaultModel)}" ${why}, so a request for an unknown model is answered with 404`,
  );
}

function warnOfRoutes(
  { models, routes }: Entries,
  upstreams: ReadonlyMap<string | undefined, Reach>,
  findings: Findings,
): void {
  const inModels = new Set(
    (models ?? []).flatMap(({ section }) => (section.disabled === true ? [] : idsOf(section.upstreams))),
  );
  for (const { index, section } of routes ?? []) {
    if (section.disabled === true || section.upstreams === undefined) continue;
    const ids = idsOf(section.upstreams);
    if (ids.some((id) => inModels.has(id) && upstreams.get(id)?.enabled === true)) continue;
    findings.warning(
      ['routes', index, 'upstreams'],
      'no model has any of them, disabled ones left out, so there is no model under this route',
    );
  }
}
