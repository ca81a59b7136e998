import { restBase } from './recovery-rules.js';
import { Setting } from './setting.js';
import { duration } from './tolerant-rules.js';

/** The long form of `backoff`. */
export class BackoffSection {
  @Setting({
    rule: restBase,
    tolerated: true,
    default: 'PT1S',
    example: 'PT5S',
    description: 'First rest of a streak of failures; each further one is twice as long.',
  })
  base?: unknown;

  @Setting({
    rule: duration,
    tolerated: true,
    required: true,
    example: 'PT5M',
    description: 'Longest rest; `backoff: PT5M` says the same in short.',
  })
  cap?: unknown;
}
