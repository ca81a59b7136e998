import type { Registry } from 'prom-client';
import { CounterFamily, type CounterSeries } from './series.js';

/** Stands for all consumers beyond the limit. */
const OTHER = 'other';

/** The series of one consumer and model, made when first needed: a request finds them by two look-ups. */
interface OfModel {
  readonly results: Map<string, CounterSeries>;
  input: CounterSeries | null;
  output: CounterSeries | null;
}

/** What each consumer uses. Names as many of them as it may, in the order in which they come; lives as long as the service. */
export class ConsumerMetrics {
  readonly #requests: CounterFamily;
  readonly #tokens: CounterFamily;
  /** By consumer as its label names it, then by model. */
  readonly #series = new Map<string, Map<string, OfModel>>();

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
    const label = this.#label(consumer);
    const { results } = this.#of(label, model);
    let series = results.get(result);
    if (series === undefined) results.set(result, (series = this.#requests.with(label, model, result)));
    series.add();
  }

  /** Only finite, positive numbers are believed. */
  tokens(consumer: string, model: string, input: unknown, output: unknown): void {
    if (isAmount(input)) this.#add(consumer, model, 'input', input);
    if (isAmount(output)) this.#add(consumer, model, 'output', output);
  }

  #add(consumer: string, model: string, direction: 'input' | 'output', amount: number): void {
    const label = this.#label(consumer);
    const of = this.#of(label, model);
    of[direction] ??= this.#tokens.with(label, model, direction);
    of[direction].add(amount);
  }

  /** The first of them are named. */
  #label(consumer: string): string {
    if (this.#series.has(consumer)) return consumer;
    const named = this.#series.has(OTHER) ? this.#series.size - 1 : this.#series.size;
    return named >= this.limit ? OTHER : consumer;
  }

  #of(label: string, model: string): OfModel {
    let models = this.#series.get(label);
    if (models === undefined) this.#series.set(label, (models = new Map()));
    let of = models.get(model);
    if (of === undefined) models.set(model, (of = { results: new Map(), input: null, output: null }));
    return of;
  }
}

function isAmount(amount: unknown): amount is number {
  return typeof amount === 'number' && Number.isFinite(amount) && amount > 0;
}
