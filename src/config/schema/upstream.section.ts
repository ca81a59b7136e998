import type { RecoveryMode } from '../gateway-config.js';
import type { PlainObject } from '../loader/plain-object.js';
import { BackoffSection } from './backoff.section.js';
import { quotaSetting, type QuotaSection } from './quota.section.js';
import { labels, NO_LABELS } from './label-rules.js';
import { ProbeSection } from './probe.section.js';
import { capabilities, protocols } from './protocol-rules.js';
import { durationOr, RECOVERY_MODES, word } from './recovery-rules.js';
import { limit, wholeNumber } from './number-rules.js';
import type { PrefillMerge } from './provider.section.js';
import { Setting } from './setting.js';
import { prefill } from './stream-rules.js';
import { jsonObject, section } from './structure-rules.js';
import { flag, NO_FLAG, text } from './text-rules.js';
import { duration, thinkTags } from './tolerant-rules.js';

/** One of `upstreams:`: a real model at a provider. */
export class UpstreamSection {
  @Setting({
    rule: text,
    required: true,
    example: 'routerai-gpt4o',
    description: 'Unique id; models refer to it.',
  })
  id?: string;

  @Setting({ rule: text, required: true, example: 'routerai', description: 'Id of its provider.' })
  provider?: string;

  @Setting({ rule: text, required: true, example: 'gpt-4o', description: "The provider's real model name." })
  model?: string;

  @Setting({
    rule: protocols,
    example: ['chat-completions', 'messages'],
    description: "Overrides the provider's protocol.",
  })
  protocol?: string | string[];

  @Setting({
    rule: capabilities,
    default: ['chat'],
    example: ['chat', 'embeddings'],
    description: 'What this upstream can do.',
  })
  serves?: string[];

  @Setting({
    rule: flag,
    nullProblem: NO_FLAG,
    default: false,
    description: 'true = it is out of every model.',
  })
  disabled?: boolean;

  @Setting({
    rule: labels,
    nullProblem: NO_LABELS,
    example: { region: 'eu' },
    description: "Labels; they win over the provider's.",
  })
  labels?: Record<string, string>;

  @Setting({
    rule: limit,
    nullMatters: true,
    example: 4,
    description: "Requests at once; 0 or null = unlimited; absent = the provider's, else unlimited.",
  })
  max_concurrency?: number | null;

  @Setting({
    rule: text,
    nullMatters: true,
    example: 'gpu0',
    description: "Whose slots it shares beside its own limit; null = none; absent = the provider's.",
  })
  slot_group?: string | null;

  @Setting({
    rule: duration,
    tolerated: true,
    example: 'PT200MS',
    description:
      'Pause between the end of an exchange and the next one, in which its slot counts as taken; absent = that of its slot group.',
  })
  settle?: unknown;

  @Setting({
    rule: jsonObject,
    example: { provider: { ignore: ['deepseek'] } },
    description: "Merged into the body after the provider's patch.",
  })
  patch?: PlainObject;

  @Setting({
    rule: wholeNumber(1),
    example: 131072,
    description: 'Tokens the model can hold; known larger ones take over where a prompt was too long.',
  })
  context_window?: number;

  @Setting({
    rule: thinkTags,
    tolerated: true,
    example: 'strip',
    description: "Overrides the provider's think_tags.",
  })
  think_tags?: unknown;

  @Setting({
    rule: durationOr(BackoffSection),
    section: BackoffSection,
    tolerated: true,
    example: 'PT15M',
    description:
      "Longest rest after failures, with a counter of its own; the provider's backoff does not apply then.",
  })
  backoff?: unknown;

  @Setting({
    rule: duration,
    tolerated: true,
    example: 'PT10S',
    description: "Overrides the provider's first_byte_timeout; PT0S = off.",
  })
  first_byte_timeout?: unknown;

  @Setting({
    rule: duration,
    tolerated: true,
    example: 'PT1M',
    description: "Overrides the provider's first_token_timeout; PT0S = off.",
  })
  first_token_timeout?: unknown;

  @Setting({
    rule: duration,
    tolerated: true,
    example: 'PT2M',
    description: "Overrides the provider's idle_timeout; PT0S = off.",
  })
  idle_timeout?: unknown;

  @Setting({
    rule: prefill,
    example: { message: { prefix: true }, body: { continue_final_message: true } },
    description: "Overrides the provider's prefill.",
  })
  prefill?: boolean | PrefillMerge;

  @Setting({
    rule: duration,
    tolerated: true,
    example: 'PT0S',
    description: "Overrides the provider's probe_interval; PT0S = off.",
  })
  probe_interval?: unknown;

  @Setting({
    rule: section(ProbeSection),
    section: ProbeSection,
    description: "Overrides the provider's probe, key by key.",
  })
  probe?: ProbeSection;

  @Setting({
    rule: word(RECOVERY_MODES),
    example: 'both',
    description: "Overrides the provider's recovery.",
  })
  recovery?: RecoveryMode;

  @Setting({
    rule: duration,
    tolerated: true,
    example: 'PT2M',
    description: "Overrides the provider's and the server's request_timeout.",
  })
  request_timeout?: unknown;

  @Setting({ ...quotaSetting('this upstream'), example: [{ requests: 60, per: 'PT1M', window: 'sliding' }] })
  quota?: QuotaSection[];
}
