import type { Registry } from 'prom-client';
import { CounterFamily } from './series.js';

/** Stands for all consumers beyond the limit. */
const OTHER = 'other';

/** What each consumer uses. Names as many of them as it may, in the order in which they come; lives as long as the service. */
export class ConsumerMetrics {
  readonly #requests: CounterFamily;
  readonly #tokens: CounterFamily;
  readonly #named = new Set<string>();

  constructor(
    registry: Registry,
    private readonly limit: number,
  ) {
    this.#requests = new CounterFamily(
      registry,
      'llm_proxy_consumer_requests_total',
      'Requests of consumers by the result of their last attempt, or the reason of their rejection.',
      ['consumer', 'model', 'result'],
    );
    this.#tokens = new CounterFamily(
      registry,
      'llm_proxy_consumer_tokens_total',
      'Tokens that upstreams reported as used, by consumer.',
      ['consumer', 'model', 'direction'],
    );
  }

  /** Once for each request; `model` is a configured name or ''. */
  counted(consumer: string, model: string, result: string): void {
    this.#requests.with(this.#label(consumer), model, result).add();
  }

  /** Only finite, positive numbers are believed. */
  tokens(consumer: string, model: string, input: unknown, output: unknown): void {
    this.#add(consumer, model, 'input', input);
    this.#add(consumer, model, 'output', output);
  }

  #add(consumer: string, model: string, direction: string, amount: unknown): void {
    if (typeof amount !== 'number' || !Number.isFinite(amount) || amount <= 0) return;
    this.#tokens.with(this.#label(consumer), model, direction).add(amount);
  }

  #label(consumer: string): string {
    if (this.#named.has(consumer)) return consumer;
    if (this.#named.size >= this.limit) return OTHER;
    this.#named.add(consumer);
    return consumer;
  }
}
