import { expiry, NO_EXPIRY } from './key-rules.js';
import { quotaSetting, type QuotaSection } from './quota.section.js';
import { Setting } from './setting.js';
import { flag, NO_FLAG, secret, text } from './text-rules.js';

/** One of a provider's `keys:` in its long form. */
export class KeySection {
  @Setting({
    rule: text,
    example: 'team-b',
    description: 'Name of the key in log and metrics, unique in its list; absent = #1, #2, … by its place.',
  })
  id?: string;

  @Setting({
    rule: secret,
    required: true,
    substituted: true,
    example: '${OPENAI_KEY_B}',
    description: 'The key itself; `${VAR}` is replaced. Empty = no key.',
  })
  value?: string;

  @Setting({
    rule: expiry,
    nullProblem: NO_EXPIRY,
    example: '2027-01-31',
    description: 'Not used after this date (the end of that day in UTC) or instant.',
  })
  expires?: string;

  @Setting({ rule: flag, nullProblem: NO_FLAG, default: false, description: 'Not used.' })
  disabled?: boolean;

  @Setting({
    ...quotaSetting('this key, by all upstreams together,'),
    example: [{ requests: 200, per: 'P1D' }],
  })
  quota?: QuotaSection[];
}
