import { ConsumerSection } from './consumer.section.js';
import type { PlainObject } from '../loader/plain-object.js';
import { ModelSection } from './model.section.js';
import { PluginSection } from './plugin.section.js';
import { ProviderSection } from './provider.section.js';
import { RouteSection } from './route.section.js';
import { ServerSection } from './server.section.js';
import { Setting } from './setting.js';
import { StateSection } from './state.section.js';
import { slotGroups } from './slot-group-rule.js';
import { section, sections } from './structure-rules.js';
import { text, textList } from './text-rules.js';
import { UpstreamSection } from './upstream.section.js';

/** The whole file. The lists hold plain mappings: each entry is checked as a section of its own. */
export class RootSection {
  @Setting({ rule: section(ServerSection), section: ServerSection, description: 'The service itself.' })
  server?: unknown;

  @Setting({
    rule: slotGroups,
    example: { gpu0: 1 },
    description:
      'Slots that several upstreams share, such as one machine: id → limit, or { limit, settle } with a pause after each exchange.',
  })
  slot_groups?: PlainObject;

  @Setting({
    rule: sections(ProviderSection, 'provider', true),
    section: ProviderSection,
    required: true,
    description: 'Places that speak the OpenAI API.',
  })
  providers?: unknown[];

  @Setting({
    rule: sections(UpstreamSection, 'upstream', true),
    section: UpstreamSection,
    required: true,
    description: 'Real models at providers.',
  })
  upstreams?: unknown[];

  @Setting({
    rule: sections(ModelSection, 'model', true),
    section: ModelSection,
    required: true,
    description: 'Names that clients ask for, each with its upstreams in order of priority.',
  })
  models?: unknown[];

  @Setting({
    rule: text,
    example: 'AUTO',
    description: 'Name of the model that takes requests for unknown names; absent = they get 404.',
  })
  default_model?: string;

  @Setting({
    rule: sections(ConsumerSection, 'consumer', false),
    section: ConsumerSection,
    nullProblem: 'has no value; write [] to refuse everybody, or remove the key to let everybody in',
    description: 'Who may call the service; present, even empty = everybody else is refused, absent = open.',
  })
  consumers?: ConsumerSection[];

  @Setting({
    rule: text,
    nullProblem: 'has no value; name a file, or remove the key',
    example: './consumers.jsonl',
    description: 'A file beside this one with further consumers, one JSON object a line.',
  })
  consumers_file?: string;

  @Setting({
    rule: sections(RouteSection, 'route', true),
    section: RouteSection,
    nullProblem: 'has no value; list the routes, or remove the key for the one default route /v1',
    description: 'Paths under which the endpoints answer; with this key only these, without it `/v1`.',
  })
  routes?: RouteSection[];

  @Setting({
    rule: sections(PluginSection, 'plugin', false),
    section: PluginSection,
    default: [],
    description: 'Modules of your own, loaded at start.',
  })
  plugins?: unknown[];

  @Setting({
    rule: textList('ids of built-in interceptors', false),
    default: [],
    example: ['think-tags'],
    description: 'Ids of built-in interceptors to leave out.',
  })
  disable?: string[];

  @Setting({ rule: section(StateSection), section: StateSection, description: 'Where counters live.' })
  state?: unknown;
}
