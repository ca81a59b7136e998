import type { QueueConfig } from '../../config/gateway-config.js';
import type { Waiter } from './waiter.js';

export type WaitOutcome = 'served' | 'timeout' | 'left';

/** Where waits are counted. */
export type WaitMeter = (outcome: WaitOutcome, seconds: number) => void;

/** Those who wait for one model: how many may, how many bytes they may hold. Lives with the configuration. */
export class ModelQueue {
  readonly #waiting = new Set<Waiter>();
  #bytes = 0;

  constructor(
    readonly model: string,
    readonly config: QueueConfig,
    readonly count: WaitMeter,
  ) {}

  get depth(): number {
    return this.#waiting.size;
  }

  hasRoomFor(bytes: number): boolean {
    return this.#waiting.size < this.config.size && this.#bytes + bytes <= this.config.maxBytes;
  }

  enter(waiter: Waiter): void {
    this.#waiting.add(waiter);
    this.#bytes += waiter.bytes;
  }

  leave(waiter: Waiter): void {
    if (this.#waiting.delete(waiter)) this.#bytes -= waiter.bytes;
  }

  /** Who must go so that the newcomer fits: the newest of the lowest priorities below its own; null where that is not enough. */
  displacedBy(newcomer: Waiter): readonly Waiter[] | null {
    const lower = [...this.#waiting].filter(({ lifted }) => lifted < newcomer.priority);
    lower.sort((a, b) => a.lifted - b.lifted || b.order - a.order);
    let count = this.#waiting.size;
    let bytes = this.#bytes + newcomer.bytes;
    // Those who came back after a failure may have made it fuller than it should be: that is not the newcomer's to pay for.
    const size = Math.max(this.config.size, count);
    const maxBytes = Math.max(this.config.maxBytes, this.#bytes);
    for (let gone = 0; ; gone++) {
      if (count < size && bytes <= maxBytes) return lower.slice(0, gone);
      const next = lower[gone];
      if (next === undefined) return null;
      count--;
      bytes -= next.bytes;
    }
  }
}
