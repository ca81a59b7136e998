import { Setting } from './setting.js';
import { duration } from './tolerant-rules.js';

/** `models[].heartbeat:`: signs of life on streams that wait for their first event. */
export class HeartbeatSection {
  @Setting({
    rule: duration,
    tolerated: true,
    default: 'PT10S',
    description: 'Silence after which the event stream is opened with a comment.',
  })
  after?: unknown;

  @Setting({
    rule: duration,
    tolerated: true,
    default: 'PT10S',
    description: 'Time between further comments.',
  })
  every?: unknown;
}
