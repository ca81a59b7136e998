import type { JsonDocument } from '../../common/json/json-document.js';
import { SseDecoder } from '../../common/sse/sse-decoder.js';
import type { SseEvent } from '../../common/sse/sse-event.js';
import type { StreamObserver } from '../../contracts/stream.js';

const NEEDLES = ['"error"', '"response.failed"'] as const;

/** Sees an error that came inside of a 200 stream of messages or responses: for the client it passes as it is. */
export class FailureWatch implements StreamObserver {
  readonly needles = NEEDLES;
  seen = false;

  observe({ json }: SseEvent): void {
    if (json !== undefined && isErrorEvent(json)) this.seen = true;
  }
}

/** Whether what came first is such an error: then nothing was sent, and another upstream may be tried. */
export function beginsWithError(chunk: Buffer): boolean {
  let first: SseEvent | undefined;
  try {
    new SseDecoder().push(chunk, (event) => {
      if (first === undefined && event.data !== undefined) first = event;
    });
  } catch {
    // Too large an event is no error event; who relays it will say so.
    return false;
  }
  const json = first?.json;
  return json !== undefined && isErrorEvent(json);
}

function isErrorEvent(json: JsonDocument): boolean {
  const type = json.string('type');
  return type === 'error' || type === 'response.failed';
}
