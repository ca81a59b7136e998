import type { Registry } from 'prom-client';
import { CounterFamily, type CounterSeries } from './series.js';

/** Stands for all consumers beyond the limit. */
export const OTHER_CONSUMERS = 'other';

/** The series of one consumer and model, made when first needed. */
interface OfModel {
  readonly results: Map<string, CounterSeries>;
  /** The result that came last, which is nearly always the next one too. */
  result: string;
  last: CounterSeries | null;
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
    const of = this.#of(consumer, model);
    if (of.last === null || of.result !== result) {
      of.last = this.#resultOf(of, this.#label(consumer), model, result);
      of.result = result;
    }
    of.last.add();
  }

  /** Only finite, positive numbers are believed. */
  tokens(consumer: string, model: string, input: unknown, output: unknown): void {
    if (isAmount(input)) this.#add(consumer, model, 'input', input);
    if (isAmount(output)) this.#add(consumer, model, 'output', output);
  }

  #add(consumer: string, model: string, direction: 'input' | 'output', amount: number): void {
    const of = this.#of(consumer, model);
    of[direction] ??= this.#tokens.with(this.#label(consumer), model, direction);
    of[direction].add(amount);
  }

  #resultOf({ results }: OfModel, label: string, model: string, result: string): CounterSeries {
    let series = results.get(result);
    if (series === undefined) results.set(result, (series = this.#requests.with(label, model, result)));
    return series;
  }

  #of(consumer: string, model: string): OfModel {
    const models = this.#series.get(consumer) ?? this.#begin(this.#label(consumer));
    let of = models.get(model);
    if (of === undefined) {
      models.set(model, (of = { results: new Map(), result: '', last: null, input: null, output: null }));
    }
    return of;
  }

  #begin(label: string): Map<string, OfModel> {
    let models = this.#series.get(label);
    if (models === undefined) this.#series.set(label, (models = new Map()));
    return models;
  }

  /** The first of them are named. */
  #label(consumer: string): string {
    if (this.#series.has(consumer)) return consumer;
    const named = this.#series.has(OTHER_CONSUMERS) ? this.#series.size - 1 : this.#series.size;
    return named >= this.limit ? OTHER_CONSUMERS : consumer;
  }
}

function isAmount(amount: unknown): amount is number {
  return typeof amount === 'number' && Number.isFinite(amount) && amount > 0;
}
