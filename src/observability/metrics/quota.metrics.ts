import { Gauge, type Registry } from 'prom-client';
import { OTHER_CONSUMERS } from './consumer.metrics.js';
import { CounterFamily, type CounterSeries } from './series.js';

/** What the gauge reads at scrape time. */
export interface QuotaState {
  readonly scope: string;
  readonly id: string;
  readonly unit: string;
  readonly per: string;
  readonly remaining: number;
}

/** The metrics of quotas. One instance for a registry, as long as the service lives. */
export class QuotaMetrics {
  readonly #estimated: CounterFamily;
  #states: () => Iterable<QuotaState> = () => [];

  /** @param consumers most of them that are named */
  constructor(registry: Registry, consumers: number) {
    this.#estimated = new CounterFamily(
      registry,
      'llm_proxy_tokens_estimated_total',
      'Tokens that quotas count by an estimate, since no usage came.',
      ['upstream'],
    );
    const states = () => this.#states();
    new Gauge({
      name: 'llm_proxy_quota_remaining',
      help: 'What is neither used nor reserved of a quota; 0 or less = used up.',
      labelNames: ['scope', 'id', 'unit', 'per'],
      registers: [registry],
      collect() {
        this.reset();
        for (const [labels, remaining] of smallest(named(states(), consumers))) this.set(labels, remaining);
      },
    });
  }

  estimatedTokens(upstream: string): CounterSeries {
    return this.#estimated.with(upstream);
  }

  /** Where the gauge comes from; asked at each scrape. */
  set remaining(source: () => Iterable<QuotaState>) {
    this.#states = source;
  }
}

type QuotaLabels = Record<'scope' | 'id' | 'unit' | 'per', string>;

/** The first consumers by their names, the rest as one. */
function* named(states: Iterable<QuotaState>, limit: number): Generator<QuotaState> {
  const consumers = new Set<string>();
  for (const state of states) {
    if (state.scope !== 'consumer' || consumers.has(state.id)) yield state;
    else if (consumers.size >= limit) yield { ...state, id: OTHER_CONSUMERS };
    else {
      consumers.add(state.id);
      yield state;
    }
  }
}

/** A fixed and a sliding window of one length share their labels, as do consumers beyond the limit: the nearest one is shown. */
function smallest(states: Iterable<QuotaState>): Iterable<[QuotaLabels, number]> {
  const byLabels = new Map<string, [QuotaLabels, number]>();
  for (const { scope, id, unit, per, remaining } of states) {
    const labels = { scope, id: id.toWellFormed(), unit, per };
    const key = JSON.stringify(labels);
    const known = byLabels.get(key);
    byLabels.set(key, [labels, Math.min(remaining, known?.[1] ?? Infinity)]);
  }
  return byLabels.values();
}
