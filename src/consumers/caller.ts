import type { Labels } from '../common/selector/label-selector.js';
import type { ConsumerConfig, ConsumerKeyConfig } from '../config/access-config.js';
import type { Consumer } from '../contracts/consumer.js';

/** A request that waits for a place of its consumer. */
export interface WaitsForPlace {
  /** Higher first. */
  readonly priority: number;
  /** Monotonic. */
  readonly since: number;
  /** The place is its own now. */
  handOver(): void;
  /** There will be none: it waits no longer. */
  giveUp(): void;
}

/** The requests of one consumer that run at this moment, over all its keys. Never negative. */
export class ConsumerSlots {
  #running = 0;
  /** Where replicas share the limit: how many places of it are this one's to use. −1 = all. */
  #granted = -1;
  /** In the order in which they came. */
  readonly #waiting = new Set<WaitsForPlace>();

  constructor(
    /** ≥ 1, or Infinity. */
    readonly limit: number,
  ) {}

  get active(): number {
    return this.#running;
  }

  get free(): boolean {
    return this.#running < (this.#granted < 0 ? this.limit : this.#granted);
  }

  /** Who is served next: the first of the highest priority that waits. */
  get first(): WaitsForPlace | null {
    let first: WaitsForPlace | null = null;
    for (const one of this.#waiting) if (first === null || one.priority > first.priority) first = one;
    return first;
  }

  /** The limit is shared: `count` places of it are this replica's to use, from now on. */
  grant(count: number): void {
    this.#granted = count;
  }

  /** False, with nothing taken, at the limit. */
  take(): boolean {
    if (!this.free) return false;
    this.#running++;
    return true;
  }

  /** Once for each place that was taken, or handed over. */
  giveBack(): void {
    if (this.#running === 0) throw new Error('a place of a consumer was given back twice');
    this.#running--;
    this.serve();
  }

  /** Hands what is free to those who wait. */
  serve(): void {
    for (let next = this.first; next !== null && this.take(); next = this.first) {
      this.#waiting.delete(next);
      next.handOver();
    }
  }

  /** Nobody waits any more. */
  sendBack(): void {
    for (const one of this.#waiting) {
      this.#waiting.delete(one);
      one.giveUp();
    }
  }

  wait(request: WaitsForPlace): void {
    this.#waiting.add(request);
  }

  /** It waits no longer; nothing where it does not. */
  leave(request: WaitsForPlace): void {
    this.#waiting.delete(request);
  }
}

/** One key of one consumer, with what all keys of the consumer share. Lives with the configuration. */
export class Caller implements Consumer {
  readonly id: string;
  readonly key: string;
  readonly labels: Labels;
  readonly priority: number;
  readonly direct: boolean;

  constructor(
    readonly config: ConsumerConfig,
    readonly keyConfig: ConsumerKeyConfig,
    readonly slots: ConsumerSlots,
  ) {
    this.id = config.id;
    this.key = keyConfig.id;
    this.labels = keyConfig.labels;
    this.priority = config.priority;
    this.direct = config.direct;
  }

  /** By the selectors of the consumer and of the key. */
  allows(kind: 'routes' | 'models' | 'upstreams', labels: Labels): boolean {
    const ofConsumer = this.config.select[kind];
    const ofKey = this.keyConfig.select[kind];
    return (ofConsumer?.matches(labels) ?? true) && (ofKey?.matches(labels) ?? true);
  }
}
