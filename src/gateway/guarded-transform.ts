import { pluginFailed } from '../common/errors/catalogue.js';
import { refusePromise } from '../common/errors/plugin-mistake.js';
import type { JsonDocument } from '../common/json/json-document.js';
import type { SseEvent } from '../common/sse/sse-event.js';
import { StreamLimitError } from '../common/sse/stream-limit.js';
import type { StreamTransform } from '../contracts/stream.js';
import { needlesOf } from './plugin-returns.js';

/** A transform whose throw is known as its own: noted once by the plugin's name, then the answer is given up. */
export class GuardedTransform implements StreamTransform {
  #needles: readonly string[] | null = null;
  #failed = false;

  constructor(
    private readonly inner: StreamTransform,
    private readonly note: (error: unknown) => void,
  ) {}

  get needles(): readonly string[] | null {
    try {
      const { needles } = this.inner;
      // Mostly a constant: a list is looked at once.
      if (needles !== this.#needles && needles !== null) this.#needles = needlesOf(needles);
      return needles;
    } catch (error) {
      throw this.#failure(error);
    }
  }

  push(event: SseEvent, emit: (event: SseEvent) => void): void {
    this.#run('push', () => this.inner.push(event, emit));
  }

  flush(emit: (event: SseEvent) => void): void {
    this.#run('flush', () => this.inner.flush(emit));
  }

  whole(answer: JsonDocument): void {
    this.#run('whole', () => this.inner.whole(answer));
  }

  #run(name: string, work: () => unknown): void {
    if (this.#failed) throw new TransformFailure();
    try {
      const returned = work();
      if (returned !== undefined) refusePromise(returned, name);
    } catch (error) {
      throw this.#failure(error);
    }
  }

  #failure(error: unknown): TransformFailure | StreamLimitError {
    // Trap: a later transform's failure passes through the earlier ones, which called it. And a stream that is too much is
    // the upstream's fault, not the plugin's.
    if (error instanceof TransformFailure || error instanceof StreamLimitError) return error;
    if (!this.#failed) this.note(error);
    this.#failed = true;
    return new TransformFailure();
  }
}

/** Said in the log already; what is left is to end the answer. */
export class TransformFailure extends Error {
  readonly answer = pluginFailed();
}
