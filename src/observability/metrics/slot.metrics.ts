import { Gauge, type Registry } from 'prom-client';
import { CounterFamily, HistogramFamily, type HistogramSeries } from './series.js';

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320];
/** A hand-off takes less than a millisecond; what takes longer should be seen. */
const IDLE_SECONDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

export interface GroupState {
  readonly id: string;
  readonly inflight: number;
  readonly limit: number;
}

export interface QueueState {
  readonly model: string;
  readonly depth: number;
}

/** What slot groups and queues report. Holds no state of theirs: gauges ask at each scrape. */
export class SlotMetrics {
  readonly #waits: HistogramFamily;
  readonly #holds: HistogramFamily;
  readonly #idles: HistogramFamily;
  readonly #spills: CounterFamily;
  #groups: () => Iterable<GroupState> = () => [];
  #queues: () => Iterable<QueueState> = () => [];

  constructor(registry: Registry) {
    this.#waits = new HistogramFamily(
      registry,
      'llm_proxy_queue_wait_seconds',
      'Waits for a slot, by what ended them.',
      ['model', 'outcome'],
      SECONDS,
    );
    this.#holds = new HistogramFamily(
      registry,
      'llm_proxy_slot_hold_seconds',
      'Time a slot was held, of upstreams that can be waited for.',
      ['upstream'],
      SECONDS,
    );
    this.#idles = new HistogramFamily(
      registry,
      'llm_proxy_slot_idle_seconds',
      'Time between two exchanges at an upstream while somebody waited who could use it.',
      ['upstream'],
      IDLE_SECONDS,
    );
    this.#spills = new CounterFamily(
      registry,
      'llm_proxy_spill_total',
      'Requests that were given to an entry with spill_after, by reason.',
      ['model', 'upstream', 'reason'],
    );
    this.#registerGauges(registry);
  }

  hold(upstream: string): HistogramSeries {
    return this.#holds.with(upstream);
  }

  idle(upstream: string): HistogramSeries {
    return this.#idles.with(upstream);
  }

  waited(model: string, outcome: 'served' | 'timeout' | 'left', seconds: number): void {
    this.#waits.with(model, outcome).observe(seconds);
  }

  spilled(model: string, upstream: string, reason: string): void {
    this.#spills.with(model, upstream, reason).add();
  }

  /** Where the gauges come from; asked at each scrape. */
  watch(groups: () => Iterable<GroupState>, queues: () => Iterable<QueueState>): void {
    this.#groups = groups;
    this.#queues = queues;
  }

  #registerGauges(registry: Registry): void {
    const registers = [registry];
    const groups = () => this.#groups();
    const queues = () => this.#queues();
    const ofGroup = (name: string, help: string, read: (state: GroupState) => number) =>
      new Gauge({
        name,
        help,
        labelNames: ['group'],
        registers,
        collect() {
          for (const state of groups()) this.set({ group: state.id }, read(state));
        },
      });
    ofGroup('llm_proxy_slot_group_inflight', 'Slots of the group held at this moment.', (s) => s.inflight);
    ofGroup('llm_proxy_slot_group_limit', 'Slots of the group.', (s) => s.limit);
    new Gauge({
      name: 'llm_proxy_queue_depth',
      help: 'Requests that wait for a slot.',
      labelNames: ['model'],
      registers,
      collect() {
        for (const { depth, model } of queues()) this.set({ model }, depth);
      },
    });
  }
}
