import { Setting } from './setting.js';
import { text } from './text-rules.js';
import { show, simpleRule, type Rule } from './rule.js';

const store: Rule = simpleRule('store', { enum: ['memory'] }, (value) =>
  value === 'memory' ? null : `must be memory, not ${show(value)}`,
);

/** `state:`: where counters live. */
export class StateSection {
  @Setting({ rule: store, default: 'memory', description: 'memory = in this process.' })
  store?: 'memory';

  @Setting({
    rule: text,
    example: './llm-proxy.state.json',
    description:
      'File that keeps the counters of quotas across restarts, relative to this file; absent = a restart forgets them.',
  })
  file?: string;
}
