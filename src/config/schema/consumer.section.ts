import { ConsumerKeySection } from './consumer-key.section.js';
import { consumerKeys } from './consumer-rules.js';
import { labels, NO_LABELS } from './label-rules.js';
import { limit, wholeNumber } from './number-rules.js';
import { type QuotaSection, quotaSetting } from './quota.section.js';
import { SelectSection } from './select.section.js';
import { Setting } from './setting.js';
import { section } from './structure-rules.js';
import { flag, NO_FLAG, text } from './text-rules.js';

/** One of `consumers:`: who may call the service. */
export class ConsumerSection {
  @Setting({
    rule: text,
    required: true,
    example: 'team-search',
    description: 'Unique id; stands in log and metrics.',
  })
  id?: string;

  @Setting({
    rule: consumerKeys(ConsumerKeySection),
    section: ConsumerKeySection,
    nullProblem: 'has no value; list the keys, write [] for none, or remove the key',
    default: [],
    description: 'Keys of this consumer; each of them lets it in.',
  })
  keys?: ConsumerKeySection[];

  @Setting({
    rule: flag,
    nullProblem: NO_FLAG,
    default: false,
    description: 'true = all keys of this consumer are refused.',
  })
  disabled?: boolean;

  @Setting({
    rule: flag,
    default: false,
    description: 'true = may address a provider and its model directly; upstream selectors still apply.',
  })
  direct?: boolean;

  @Setting({
    rule: labels,
    nullProblem: NO_LABELS,
    example: { team: 'search' },
    description: 'Labels of the caller.',
  })
  labels?: Record<string, string>;

  @Setting({
    rule: section(SelectSection),
    section: SelectSection,
    nullProblem: 'has no value; write selectors, or remove the key',
    description: 'What this consumer may use; all selectors of route, consumer and key apply.',
  })
  select?: SelectSection;

  @Setting({
    ...quotaSetting('this consumer, over all its keys,'),
    example: [{ tokens: 5_000_000, per: 'P1D' }],
  })
  quota?: QuotaSection[];

  @Setting({
    rule: limit,
    example: 10,
    description: 'Requests at once, over all its keys; more are answered with 429; 0 or null = unlimited.',
  })
  max_concurrency?: number | null;

  @Setting({
    rule: wholeNumber(-1000, 1000),
    default: 0,
    example: 10,
    description: 'Place in a waiting line, −1000…1000; higher first.',
  })
  priority?: number;
}
