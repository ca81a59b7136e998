import type { Registry } from 'prom-client';
import { CounterFamily, type CounterSeries } from './series.js';

/** Stands for all consumers beyond the limit. */
export const OTHER_CONSUMERS = 'other';

/** The series of one label and model, made when first needed. */
interface OfModel {
  readonly model: string;
  readonly results: Map<string, CounterSeries>;
  /** The result that came last, which is nearly always the next one too. */
  result: string;
  last: CounterSeries | null;
  input: CounterSeries | null;
  output: CounterSeries | null;
}

/** What one consumer uses, or all of those that have no name here. Held by who counts: nothing is looked up by an id. */
export class ConsumerUse {
  readonly #models = new Map<string, OfModel>();
  /** The model that came last. */
  #last: OfModel | null = null;

  constructor(
    private readonly requests: CounterFamily,
    private readonly spent: CounterFamily,
    private readonly label: string,
  ) {}

  /** Once for each request; `model` is a configured name or ''. */
  counted(model: string, result: string): void {
    const of = this.#of(model);
    if (of.last === null || of.result !== result) {
      of.last = this.#resultOf(of, result);
      of.result = result;
    }
    of.last.add();
  }

  /** Only finite, positive numbers are believed. */
  tokens(model: string, input: unknown, output: unknown): void {
    if (isAmount(input)) this.#add(model, 'input', input);
    if (isAmount(output)) this.#add(model, 'output', output);
  }

  #add(model: string, direction: 'input' | 'output', amount: number): void {
    const of = this.#of(model);
    of[direction] ??= this.spent.with(this.label, model, direction);
    of[direction].add(amount);
  }

  #resultOf({ model, results }: OfModel, result: string): CounterSeries {
    let series = results.get(result);
    if (series === undefined) results.set(result, (series = this.requests.with(this.label, model, result)));
    return series;
  }

  #of(model: string): OfModel {
    if (this.#last?.model === model) return this.#last;
    let of = this.#models.get(model);
    if (of === undefined) {
      of = { model, results: new Map(), result: '', last: null, input: null, output: null };
      this.#models.set(model, of);
    }
    return (this.#last = of);
  }
}

/** What each consumer uses. Names as many of them as it may, in the order in which they come; lives as long as the service. */
export class ConsumerMetrics {
  readonly #requests: CounterFamily;
  readonly #tokens: CounterFamily;
  readonly #named = new Map<string, ConsumerUse>();
  #others: ConsumerUse | null = null;

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

  /** Asking is what names it, where there is room for a name. */
  of(consumer: string): ConsumerUse {
    const named = this.#named.get(consumer);
    if (named !== undefined) return named;
    if (this.#named.size >= this.limit) return (this.#others ??= this.#begin(OTHER_CONSUMERS));
    const use = this.#begin(consumer);
    this.#named.set(consumer, use);
    return use;
  }

  #begin(label: string): ConsumerUse {
    return new ConsumerUse(this.#requests, this.#tokens, label);
  }
}

function isAmount(amount: unknown): amount is number {
  return typeof amount === 'number' && Number.isFinite(amount) && amount > 0;
}
