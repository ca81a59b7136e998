import type { Registry } from 'prom-client';

export type Labels = Readonly<Record<string, string>>;

interface SeriesValue {
  readonly value: number;
  readonly labels: Record<string, string | number>;
  readonly metricName?: string;
}

/** What the registry asks of a metric at scrape time. */
interface Collected {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly values: readonly SeriesValue[];
  readonly aggregator: 'sum';
}

/** A number that only grows; held by reference, so that counting is one addition. */
export class CounterSeries {
  value = 0;

  add(amount = 1): void {
    this.value += amount;
  }
}

/** Counts of observations per bucket; held by reference. */
export class HistogramSeries {
  readonly counts: number[];
  sum = 0;

  constructor(private readonly bounds: readonly number[]) {
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(value: number): void {
    const { bounds, counts } = this;
    let i = 0;
    while (i < bounds.length && value > (bounds[i] as number)) i++;
    counts[i] = (counts[i] as number) + 1;
    this.sum += value;
  }
}

/**
 * A family of metrics whose series are plain objects: the hot path holds a series by reference and never looks up
 * labels; the text is made when a scrape asks for it.
 */
abstract class Family<S> {
  protected readonly series = new Map<string, { labels: Record<string, string>; series: S }>();

  constructor(
    readonly name: string,
    readonly help: string,
    private readonly labelNames: readonly string[],
    registry: Registry,
    readonly type: 'counter' | 'histogram',
  ) {
    // The registry only ever reads name, type and get() of a metric.
    registry.registerMetric(this as never);
  }

  /** The series of these label values, in the order of the label names; made at the first call. */
  with(...values: readonly string[]): S {
    const key = JSON.stringify(values);
    let entry = this.series.get(key);
    if (entry === undefined) {
      const labels: Record<string, string> = {};
      for (const [i, name] of this.labelNames.entries()) labels[name] = (values[i] ?? '').toWellFormed();
      entry = { labels, series: this.make() };
      this.series.set(key, entry);
    }
    return entry.series;
  }

  get(): Promise<Collected> {
    const values = [...this.series.values()].flatMap(({ labels, series }) => this.collect(labels, series));
    return Promise.resolve({ name: this.name, help: this.help, type: this.type, values, aggregator: 'sum' });
  }

  reset(): void {
    this.series.clear();
  }

  protected abstract make(): S;
  protected abstract collect(labels: Record<string, string>, series: S): SeriesValue[];
}

export class CounterFamily extends Family<CounterSeries> {
  constructor(registry: Registry, name: string, help: string, labelNames: readonly string[]) {
    super(name, help, labelNames, registry, 'counter');
  }

  protected make(): CounterSeries {
    return new CounterSeries();
  }

  protected collect(labels: Record<string, string>, series: CounterSeries): SeriesValue[] {
    return [{ value: series.value, labels }];
  }
}

export class HistogramFamily extends Family<HistogramSeries> {
  constructor(
    registry: Registry,
    name: string,
    help: string,
    labelNames: readonly string[],
    private readonly bounds: readonly number[],
  ) {
    super(name, help, labelNames, registry, 'histogram');
  }

  protected make(): HistogramSeries {
    return new HistogramSeries(this.bounds);
  }

  protected collect(labels: Record<string, string>, series: HistogramSeries): SeriesValue[] {
    const values: SeriesValue[] = [];
    let count = 0;
    for (const [i, n] of series.counts.entries()) {
      count += n;
      const le = i < this.bounds.length ? (this.bounds[i] as number) : '+Inf';
      values.push({ metricName: `${this.name}_bucket`, labels: { ...labels, le }, value: count });
    }
    values.push({ metricName: `${this.name}_sum`, labels, value: series.sum });
    values.push({ metricName: `${this.name}_count`, labels, value: count });
    return values;
  }
}
