import { refusePromise } from '../common/errors/plugin-mistake.js';
import type { JsonDocument } from '../common/json/json-document.js';
import type { SseEvent } from '../common/sse/sse-event.js';
import type { StreamObserver } from '../contracts/stream.js';
import { needlesOf } from './plugin-returns.js';

const NONE: readonly string[] = [];

/** A plugin's observer. What it does wrong is noted once, then it sees nothing more of this answer, which goes on. */
export class GuardedObserver implements StreamObserver {
  #needles: readonly string[] | null = null;
  #failed = false;

  constructor(
    private readonly inner: StreamObserver,
    private readonly note: (error: unknown) => void,
  ) {}

  get needles(): readonly string[] | null {
    if (this.#failed) return NONE;
    try {
      const { needles } = this.inner;
      // Mostly a constant: a list is looked at once.
      if (needles !== this.#needles && needles !== null) this.#needles = needlesOf(needles);
      return needles;
    } catch (error) {
      this.#fail(error);
      return NONE;
    }
  }

  observe(event: SseEvent): void {
    this.#run('observe', () => this.inner.observe(event));
  }

  whole(answer: JsonDocument): void {
    this.#run('whole', () => this.inner.whole?.(answer));
  }

  piece(bytes: Buffer): void {
    this.#run('piece', () => this.inner.piece?.(bytes));
  }

  #run(name: string, work: () => unknown): void {
    if (this.#failed) return;
    try {
      const returned = work();
      if (returned !== undefined) refusePromise(returned, name);
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    this.#failed = true;
    this.note(error);
  }
}
