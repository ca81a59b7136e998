import { apiKeyDisabled, apiKeyExpired, consumerDisabled } from '../common/errors/access-errors.js';
import type { GatewayError } from '../common/errors/gateway-error.js';
import type { Labels } from '../common/selector/label-selector.js';
import type { ConsumerConfig, ConsumerKeyConfig, SelectConfig } from '../config/access-config.js';
import type { Consumer } from '../contracts/consumer.js';
import type { ConsumerMetrics, ConsumerUse } from '../observability/metrics/consumer.metrics.js';

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
  /** In the order in which they came; null until somebody waits: most never do, and there are thousands. */
  #waiting: Set<WaitsForPlace> | null = null;

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
    for (const one of this.#waiting ?? []) if (first === null || one.priority > first.priority) first = one;
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
    if (this.#waiting === null) return;
    for (let next = this.first; next !== null && this.take(); next = this.first) {
      this.#waiting.delete(next);
      next.handOver();
    }
  }

  /** Nobody waits any more. */
  sendBack(): void {
    for (const one of this.#waiting ?? []) {
      this.#waiting?.delete(one);
      one.giveUp();
    }
  }

  wait(request: WaitsForPlace): void {
    (this.#waiting ??= new Set()).add(request);
  }

  /** It waits no longer; nothing where it does not. */
  leave(request: WaitsForPlace): void {
    this.#waiting?.delete(request);
  }
}

/**
 * One key of one consumer, with what all keys of the consumer share. Lives with the configuration. Thousands of them ask in
 * turn, each one's objects cold by then: what every request asks stands here itself.
 */
export class Caller implements Consumer {
  readonly #refusal: 'key disabled' | 'consumer disabled' | null;
  /** Only where it expires is the time looked at, a number of its own in memory. */
  readonly #expires: boolean;
  #use: ConsumerUse | null = null;
  readonly hasQuota: boolean;
  readonly direct: boolean;
  readonly id: string;
  readonly key: string;
  readonly labels: Labels;
  readonly priority: number;

  constructor(
    readonly config: ConsumerConfig,
    private readonly keyConfig: ConsumerKeyConfig,
    /** The consumer's and the key's: what it may see must satisfy all. */
    readonly selects: readonly SelectConfig[],
    readonly slots: ConsumerSlots,
  ) {
    this.id = config.id;
    this.key = keyConfig.id;
    this.labels = keyConfig.labels;
    this.priority = config.priority;
    this.direct = config.direct;
    this.hasQuota = config.quota.length > 0;
    this.#refusal = keyConfig.disabled ? 'key disabled' : config.disabled ? 'consumer disabled' : null;
    this.#expires = keyConfig.expiresAtMs !== Infinity;
  }

  /** @param nowMs unix milliseconds: expiry is a matter of the wall clock */
  objection(nowMs: number): GatewayError | null {
    if (this.#refusal === 'key disabled') return apiKeyDisabled();
    if (this.#expires && nowMs >= this.keyConfig.expiresAtMs) return apiKeyExpired();
    return this.#refusal === null ? null : consumerDisabled();
  }

  /** By the selectors of the consumer and of the key. */
  allows(kind: 'routes' | 'models' | 'upstreams', labels: Labels): boolean {
    for (const select of this.selects) if (select[kind]?.matches(labels) === false) return false;
    return true;
  }

  /** Its part of the metrics. The first to count is named first. */
  useIn(metrics: ConsumerMetrics): ConsumerUse {
    return (this.#use ??= metrics.of(this.id));
  }
}
