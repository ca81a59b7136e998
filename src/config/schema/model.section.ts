import type { PlainObject } from '../loader/plain-object.js';
import { labels, NO_LABELS } from './label-rules.js';
import { HeartbeatSection } from './heartbeat.section.js';
import { ModelEntrySection } from './model-entry.section.js';
import { count } from './number-rules.js';
import { QueueSection } from './queue.section.js';
import { word } from './recovery-rules.js';
import { Setting } from './setting.js';
import { jsonObject, section, textsOrSections } from './structure-rules.js';
import { flag, NO_FLAG, text } from './text-rules.js';
import { duration } from './tolerant-rules.js';

/** One of `models:`: a name that clients ask for. */
export class ModelSection {
  @Setting({
    rule: text,
    required: true,
    example: 'my-gpt',
    description: 'Unique name; what clients ask for.',
  })
  name?: string;

  @Setting({
    rule: textsOrSections(ModelEntrySection, 'upstream ids'),
    section: ModelEntrySection,
    required: true,
    example: ['local-qwen', 'routerai-gpt4o'],
    description:
      'Ids of upstreams, or entries with more to say; at least one, no plain id twice; the order is the priority.',
  })
  upstreams?: (string | ModelEntrySection)[];

  @Setting({
    rule: flag,
    nullProblem: NO_FLAG,
    default: false,
    description: 'true = the model does not exist for anybody.',
  })
  disabled?: boolean;

  @Setting({
    rule: labels,
    nullProblem: NO_LABELS,
    example: { preview: 'yes' },
    description: 'Labels of the model.',
  })
  labels?: Record<string, string>;

  @Setting({
    rule: text,
    default: 'listed',
    example: 'weighted',
    description:
      'Order within a tier: listed, weighted, least_busy, fastest, or the name of a routing policy of a plugin.',
  })
  order?: string;

  @Setting({
    rule: count,
    nullProblem: 'has no value; write a number, or remove the key',
    example: 4,
    description: 'Attempts for one request at most, each key counted; absent = as many as the list has.',
  })
  max_attempts?: number;

  @Setting({
    rule: duration,
    tolerated: true,
    example: 'PT3M',
    description: 'Time for one request over all its attempts; absent or PT0S = no limit.',
  })
  deadline?: unknown;

  @Setting({
    rule: jsonObject,
    example: { reasoning: { enabled: false } },
    description: 'Merged into the body last.',
  })
  patch?: PlainObject;

  @Setting({
    rule: word(['error', 'continue']),
    default: 'error',
    example: 'continue',
    description:
      'When a stream breaks: error = the client is told; continue = another upstream that is declared prefill goes on.',
  })
  on_interrupt?: 'error' | 'continue';

  @Setting({
    rule: word(['off', 'session']),
    default: 'off',
    example: 'session',
    description:
      'session = a conversation prefers the upstream that served it before, which has it in its cache.',
  })
  affinity?: 'off' | 'session';

  @Setting({
    rule: duration,
    tolerated: true,
    default: 'PT0S',
    example: 'PT2S',
    description: 'With affinity: how long a request waits for that upstream while it is busy.',
  })
  affinity_wait?: unknown;

  @Setting({
    rule: section(QueueSection),
    section: QueueSection,
    description: 'Requests that find no free slot wait for one; absent = they are refused at once.',
  })
  queue?: QueueSection;

  @Setting({
    rule: section(HeartbeatSection),
    section: HeartbeatSection,
    description: 'Streams that wait get comments as signs of life; absent = off.',
  })
  heartbeat?: HeartbeatSection;
}
