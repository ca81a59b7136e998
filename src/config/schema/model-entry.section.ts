import { tier, weight, wholeNumber } from './number-rules.js';
import { quotaSetting, type QuotaSection } from './quota.section.js';
import { Setting } from './setting.js';
import { text } from './text-rules.js';
import { duration } from './tolerant-rules.js';

/** One of a model's `upstreams:` in its long form; a plain id is the same with nothing but `upstream`. */
export class ModelEntrySection {
  @Setting({ rule: text, required: true, example: 'local-qwen', description: 'Id of the upstream.' })
  upstream?: string;

  @Setting({
    rule: tier,
    default: 1,
    example: 2,
    description: 'Lower = better: the next tier is only tried when nothing of the better ones can serve.',
  })
  tier?: number;

  @Setting({
    rule: weight,
    default: 1,
    example: 3,
    description: 'Share of the requests within its tier under order: weighted; 0 = last resort.',
  })
  weight?: number;

  @Setting({ ...quotaSetting('this upstream by this model'), example: [{ tokens: 500_000, per: 'P1D' }] })
  quota?: QuotaSection[];

  @Setting({
    rule: duration,
    tolerated: true,
    example: 'PT5S',
    description:
      'Only used by requests that waited that long, that would wait longer, or for which nothing before it is left. Needs `queue`.',
  })
  spill_after?: unknown;

  @Setting({
    rule: wholeNumber(-1000, 1000),
    nullProblem: 'has no value; write a priority, or remove the key to let every request use this entry',
    example: 0,
    description: 'Requests of a lower priority never use this entry. Needs `queue`.',
  })
  spill_min_priority?: number;
}
