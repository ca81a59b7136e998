import { labels, NO_LABELS } from './label-rules.js';
import { count } from './number-rules.js';
import { RouteUpstreamSection } from './route-upstream.section.js';
import { routePath } from './route-path-rule.js';
import { RouteSelectSection } from './select.section.js';
import { Setting } from './setting.js';
import { section, textsOrSections } from './structure-rules.js';
import { flag, NO_FLAG, text } from './text-rules.js';

/** One of `routes:`: a path under which the endpoints answer, with upstreams and rules of its own. */
export class RouteSection {
  @Setting({ rule: text, required: true, example: 'default', description: 'Unique id; stands in the log.' })
  id?: string;

  @Setting({
    rule: routePath,
    required: true,
    example: '/v1',
    description: 'What stands before the endpoint; the longest path that fits, by whole segments, wins.',
  })
  path?: string;

  @Setting({
    rule: flag,
    nullProblem: NO_FLAG,
    default: false,
    description: 'true = the path is answered with 404.',
  })
  disabled?: boolean;

  @Setting({
    rule: labels,
    nullProblem: NO_LABELS,
    example: { kind: 'chat' },
    description: 'Labels of the route.',
  })
  labels?: Record<string, string>;

  @Setting({
    rule: textsOrSections(RouteUpstreamSection, 'upstream ids'),
    section: RouteUpstreamSection,
    nullProblem: 'has no value; list the ids of upstreams, or remove the key to let all of them answer',
    example: ['local-qwen'],
    description: 'Upstreams that may answer under this route; absent = all.',
  })
  upstreams?: (string | RouteUpstreamSection)[];

  @Setting({
    rule: section(RouteSelectSection),
    section: RouteSelectSection,
    nullProblem: 'has no value; write selectors, or remove the key',
    description: 'What may be used under this route, and by whom.',
  })
  select?: RouteSelectSection;

  @Setting({
    rule: count,
    default: 2,
    example: 2,
    description: 'Most attempts for one request; busy and resting upstreams do not count.',
  })
  max_attempts?: number;
}
