import { pluginFailed } from '../common/errors/catalogue.js';
import type { JsonDocument } from '../common/json/json-document.js';
import type { SseEvent } from '../common/sse/sse-event.js';
import { StreamLimitError } from '../common/sse/stream-limit.js';
import type { StreamTransform } from '../contracts/stream.js';

/** A transform whose throw is known as its own: noted by the plugin's name, then the answer is given up. */
export class GuardedTransform implements StreamTransform {
  constructor(
    private readonly inner: StreamTransform,
    private readonly note: (error: unknown) => void,
  ) {}

  get needles(): readonly string[] | null {
    return this.inner.needles;
  }

  push(event: SseEvent, emit: (event: SseEvent) => void): void {
    this.#run(() => this.inner.push(event, emit));
  }

  flush(emit: (event: SseEvent) => void): void {
    this.#run(() => this.inner.flush(emit));
  }

  whole(answer: JsonDocument): void {
    this.#run(() => this.inner.whole(answer));
  }

  #run(work: () => void): void {
    try {
      work();
    } catch (error) {
      // Trap: a later transform's failure passes through the earlier ones, which called it.
      // And a stream that is too much is the upstream's fault, not the plugin's.
      if (error instanceof TransformFailure || error instanceof StreamLimitError) throw error;
      this.note(error);
      throw new TransformFailure();
    }
  }
}

/** Said in the log already; what is left is to end the answer. */
export class TransformFailure extends Error {
  readonly answer = pluginFailed();
}
