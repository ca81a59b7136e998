import { byteSize, count } from './number-rules.js';
import { Setting } from './setting.js';
import { duration } from './tolerant-rules.js';

/** `models[].queue:`: requests wait for a slot instead of being refused. */
export class QueueSection {
  @Setting({ rule: count, default: 100, description: 'How many requests may wait.' })
  size?: number;

  @Setting({
    rule: duration,
    tolerated: true,
    default: 'PT20S',
    description: 'How long a request waits at most, from the end of its body on.',
  })
  wait?: unknown;

  @Setting({
    rule: byteSize,
    default: '256MiB',
    description: 'How many bytes the bodies of all that wait may hold together, at most 1GiB.',
  })
  max_bytes?: string | number;

  @Setting({
    rule: duration,
    tolerated: true,
    example: 'PT10S',
    description: 'Waiting that long lifts a request to the next occupied priority; absent = never.',
  })
  ageing?: unknown;
}
