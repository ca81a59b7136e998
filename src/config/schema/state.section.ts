import { Setting } from './setting.js';
import { keyPrefix, redisUrl } from './state-rules.js';
import { oneOf, text } from './text-rules.js';
import { duration } from './tolerant-rules.js';

/** `state:`: where counters live. */
export class StateSection {
  @Setting({
    rule: oneOf('store', ['memory', 'redis']),
    default: 'memory',
    example: 'redis',
    description:
      'memory = in this process; redis = shared by all replicas that have the same url and prefix.',
  })
  store?: 'memory' | 'redis';

  @Setting({
    rule: redisUrl,
    substituted: true,
    example: 'redis://:${REDIS_PASSWORD}@redis:6379',
    description: 'Where Redis or Valkey listens, 6 or newer. Needed with store: redis.',
  })
  url?: string;

  @Setting({
    rule: keyPrefix,
    default: 'llm-proxy:',
    description: 'What all keys begin with: replicas that share it count together.',
  })
  prefix?: string;

  @Setting({
    rule: oneOf('on_error', ['local', 'reject', 'strict']),
    default: 'local',
    example: 'strict',
    description:
      'While Redis is gone: local = each replica has its part of every limit; reject = 503; strict = nothing that has a limit is claimed, and what runs is cut once its slot could be given to another.',
  })
  on_error?: 'local' | 'reject' | 'strict';

  @Setting({
    rule: duration,
    tolerated: true,
    default: 'PT250MS',
    description: 'How long an answer of Redis may take.',
  })
  timeout?: unknown;

  @Setting({
    rule: text,
    example: './llm-proxy.state.json',
    description:
      'File that keeps the counters of quotas across restarts, relative to this file; absent = a restart forgets them.',
  })
  file?: string;
}
