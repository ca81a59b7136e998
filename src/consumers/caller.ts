import type { Labels } from '../common/selector/label-selector.js';
import type { ConsumerConfig, ConsumerKeyConfig } from '../config/access-config.js';
import type { Consumer } from '../contracts/consumer.js';

/** The requests of one consumer that run at this moment, over all its keys. Never negative. */
export class ConsumerSlots {
  #running = 0;

  constructor(
    /** ≥ 1, or Infinity. */
    readonly limit: number,
  ) {}

  get running(): number {
    return this.#running;
  }

  /** False, with nothing taken, at the limit. */
  take(): boolean {
    if (this.#running >= this.limit) return false;
    this.#running++;
    return true;
  }

  /** Once for each `take` that was true. */
  giveBack(): void {
    if (this.#running === 0) throw new Error('a place of a consumer was given back twice');
    this.#running--;
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
