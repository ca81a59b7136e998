import { selector } from './label-rules.js';
import { Setting } from './setting.js';

/** Trap: taken for an absent one, a forgotten value would open everything. */
const refused = { nullProblem: 'has no value; write a selector in quotes, or remove the key' } as const;

/** `select:` of a consumer or of one of its keys. */
export class SelectSection {
  @Setting({
    ...refused,
    rule: selector,
    example: 'kind=chat',
    description: 'Which routes may be used; others are 403.',
  })
  routes?: string;

  @Setting({
    ...refused,
    rule: selector,
    example: '!preview',
    description: 'Which models exist for this caller.',
  })
  models?: string;

  @Setting({
    ...refused,
    rule: selector,
    example: 'region in (eu, local)',
    description: 'Which upstreams may answer this caller.',
  })
  upstreams?: string;
}

/** `select:` of a route. */
export class RouteSelectSection {
  @Setting({
    ...refused,
    rule: selector,
    example: '!preview',
    description: 'Which models exist under this route.',
  })
  models?: string;

  @Setting({
    ...refused,
    rule: selector,
    example: 'region=eu',
    description: 'Which upstreams may answer under this route.',
  })
  upstreams?: string;

  @Setting({
    ...refused,
    rule: selector,
    example: 'team=search',
    description: 'Which callers may use this route.',
  })
  consumers?: string;
}
