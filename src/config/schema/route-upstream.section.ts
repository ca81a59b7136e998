import { count, whole } from './number-rules.js';
import { Setting } from './setting.js';
import { text } from './text-rules.js';

/** One of a route's `upstreams:` in its long form. */
export class RouteUpstreamSection {
  @Setting({ rule: text, required: true, example: 'local-qwen', description: 'Id of the upstream.' })
  upstream?: string;

  @Setting({
    rule: whole,
    default: 1,
    example: 1,
    description: 'Upstreams with a lower number are tried first.',
  })
  priority?: number;

  @Setting({
    rule: count,
    example: 3,
    description:
      'Share of the requests among those of the same priority, once any of them has a weight; then default 1.',
  })
  weight?: number;
}
