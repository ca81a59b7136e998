import { selector } from './label-rules.js';
import { Setting } from './setting.js';

/** `select:` of a consumer or of one of its keys. */
export class SelectSection {
  @Setting({ rule: selector, example: 'kind=chat', description: 'Which routes may be used; others are 403.' })
  routes?: string;

  @Setting({ rule: selector, example: '!preview', description: 'Which models exist for this caller.' })
  models?: string;

  @Setting({
    rule: selector,
    example: 'region in (eu, local)',
    description: 'Which upstreams may answer this caller.',
  })
  upstreams?: string;
}

/** `select:` of a route. */
export class RouteSelectSection {
  @Setting({ rule: selector, example: '!preview', description: 'Which models exist under this route.' })
  models?: string;

  @Setting({
    rule: selector,
    example: 'region=eu',
    description: 'Which upstreams may answer under this route.',
  })
  upstreams?: string;

  @Setting({ rule: selector, example: 'team=search', description: 'Which callers may use this route.' })
  consumers?: string;
}
