import type { JsonDocument } from '../common/json/json-document.js';
import type { SseEvent } from '../common/sse/sse-event.js';
import type { StreamTransform } from '../contracts/stream.js';
import type { UsageObserver } from './usage.observer.js';

const NEEDLES = ['"usage"'] as const;

/**
 * Withholds the usage chunk that the gateway asked for and the client did not; the meter sees it first. A chunk that has
 * choices is never withheld, whatever else it brings.
 */
export class UsageTransform implements StreamTransform {
  readonly needles = NEEDLES;

  constructor(private readonly meter: UsageObserver) {}

  push(event: SseEvent, emit: (event: SseEvent) => void): void {
    const { json } = event;
    if (json !== undefined && isUsageChunk(json)) this.meter.observe(event);
    else emit(event);
  }

  flush(): void {}

  whole(): void {}
}

function isUsageChunk(chunk: JsonDocument): boolean {
  if (chunk.object('usage') === undefined || chunk.array('choices')?.length !== 0) return false;
  return (chunk.get('error') ?? null) === null;
}
