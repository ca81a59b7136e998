import { sha256 } from './consumer-rules.js';
import { expiry, NO_EXPIRY } from './key-rules.js';
import { labels, NO_LABELS } from './label-rules.js';
import { SelectSection } from './select.section.js';
import { Setting } from './setting.js';
import { section } from './structure-rules.js';
import { flag, NO_FLAG, text, token } from './text-rules.js';

/** One of a consumer's `keys:`. */
export class ConsumerKeySection {
  @Setting({
    rule: text,
    required: true,
    example: 'ci',
    description: 'Id, unique in its consumer; stands in the log.',
  })
  id?: string;

  @Setting({
    rule: sha256,
    example: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    description: 'SHA-256 of the key in hex; exactly one of `sha256` and `value`.',
  })
  sha256?: string;

  @Setting({
    rule: token,
    substituted: true,
    example: '${TEAM_SEARCH_KEY}',
    description: 'The key itself, of which only the SHA-256 is kept; `${VAR}` is replaced.',
  })
  value?: string;

  @Setting({
    rule: expiry,
    nullProblem: NO_EXPIRY,
    example: '2027-06-30',
    description: 'Last UTC day on which the key is valid, or an RFC 3339 instant.',
  })
  expires?: string;

  @Setting({ rule: flag, nullProblem: NO_FLAG, default: false, description: 'true = the key is refused.' })
  disabled?: boolean;

  @Setting({
    rule: labels,
    nullProblem: NO_LABELS,
    example: { env: 'prod' },
    description: "Labels of the caller; they win over the consumer's.",
  })
  labels?: Record<string, string>;

  @Setting({
    rule: section(SelectSection),
    section: SelectSection,
    nullProblem: 'has no value; write selectors, or remove the key',
    description: "Selectors, applied beside the consumer's.",
  })
  select?: SelectSection;
}
