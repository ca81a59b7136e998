import { Gauge, type Registry } from 'prom-client';
import { CounterFamily, type CounterSeries, HistogramFamily, type HistogramSeries } from './series.js';
import type { RejectionReason } from './rejection-reason.js';
import type { ErrorClass } from '../../contracts/error-class.js';
import type { AttemptResult } from '../../contracts/exchange.js';

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320];

/** What the gauges read at scrape time. */
export interface UpstreamState {
  readonly id: string;
  readonly provider: string;
  readonly inflight: number;
  readonly failStreak: number;
  readonly coolingSeconds: number;
}

/** What a stream had said when it broke. */
export type InterruptionPhase = 'before_content' | 'content' | 'tool_calls' | 'after_finish';

/** Whether a conversation stayed where it was served before. */
export type AffinityOutcome = 'hit' | 'moved' | 'new';

/** The series of one model at one upstream, held by whoever serves it. */
export class AttemptSeries {
  readonly #results = new Map<AttemptResult, CounterSeries>();
  #inputTokens: CounterSeries | null = null;
  #outputTokens: CounterSeries | null = null;
  #cachedTokens: CounterSeries | null = null;

  constructor(
    private readonly resultOf: (result: AttemptResult) => CounterSeries,
    readonly duration: HistogramSeries,
    readonly firstByte: HistogramSeries,
    private readonly tokensOf: (direction: 'input' | 'output') => CounterSeries,
    private readonly cachedTokensOf: () => CounterSeries,
    private readonly interruptionsOf: (phase: InterruptionPhase) => CounterSeries,
  ) {}

  countInterruption(phase: InterruptionPhase): void {
    this.interruptionsOf(phase).add();
  }

  count(result: AttemptResult): void {
    let series = this.#results.get(result);
    if (series === undefined) this.#results.set(result, (series = this.resultOf(result)));
    series.value++;
  }

  /** Only finite, positive numbers are believed. */
  countTokens(input: unknown, output: unknown, cached: unknown): void {
    if (isCount(cached)) (this.#cachedTokens ??= this.cachedTokensOf()).add(cached);
    if (isCount(input)) (this.#inputTokens ??= this.tokensOf('input')).add(input);
    if (isCount(output)) (this.#outputTokens ??= this.tokensOf('output')).add(output);
  }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0;
}

/** All metrics of the gateway. One instance for a registry, as long as the service lives. */
export class GatewayMetrics {
  readonly #requests: CounterFamily;
  readonly #probes: CounterFamily;
  readonly #rejected: CounterFamily;
  readonly #tokens: CounterFamily;
  readonly #duration: HistogramFamily;
  readonly #firstByte: HistogramFamily;
  readonly #failures: CounterFamily;
  readonly #affinity: CounterFamily;
  readonly #cachedTokens: CounterFamily;
  readonly #interruptions: CounterFamily;
  readonly #pluginErrors: CounterFamily;
  #upstreams: () => Iterable<UpstreamState> = () => [];

  constructor(
    readonly registry: Registry,
    build: { readonly version: string; readonly node: string },
    logLinesDropped: () => number,
  ) {
    const counter = (name: string, help: string, labels: readonly string[]) =>
      new CounterFamily(registry, name, help, labels);
    this.#requests = counter('llm_proxy_requests_total', 'Attempts at upstreams by outcome.', [
      'model',
      'upstream',
      'provider',
      'result',
    ]);
    this.#probes = counter('llm_proxy_probe_pings_total', 'Background probes of resting upstreams.', [
      'upstream',
      'provider',
      'result',
    ]);
    this.#rejected = counter(
      'llm_proxy_rejected_total',
      'Requests the proxy answered with an error of its own.',
      ['model', 'reason'],
    );
    this.#tokens = counter('llm_proxy_tokens_total', 'Tokens that upstreams reported as used.', [
      'model',
      'upstream',
      'direction',
    ]);
    this.#failures = counter('llm_proxy_failures_total', 'Failed attempts by class of error.', [
      'upstream',
      'provider',
      'class',
    ]);
    this.#affinity = counter(
      'llm_proxy_affinity_total',
      'Requests of models with affinity, by whether their conversation stayed where it was.',
      ['model', 'outcome'],
    );
    this.#cachedTokens = counter(
      'llm_proxy_cached_tokens_total',
      'Input tokens that upstreams reported as taken from a cache.',
      ['model', 'upstream'],
    );
    this.#interruptions = counter(
      'llm_proxy_stream_interrupted_total',
      'Streams that broke after they had begun, by what they had said; those a client left do not count.',
      ['upstream', 'phase'],
    );
    this.#pluginErrors = counter('llm_proxy_plugin_errors_total', 'Errors thrown by plugins.', [
      'plugin',
      'hook',
    ]);
    const histogram = (name: string, help: string) =>
      new HistogramFamily(registry, name, help, ['model', 'upstream'], SECONDS);
    this.#duration = histogram(
      'llm_proxy_request_duration_seconds',
      'Time of one attempt, to its last byte.',
    );
    this.#firstByte = histogram(
      'llm_proxy_first_byte_seconds',
      'Time of one attempt to its first body byte.',
    );
    this.#registerGauges(build, logLinesDropped);
  }

  attempts(model: string, upstream: string, provider: string): AttemptSeries {
    return new AttemptSeries(
      (result) => this.#requests.with(model, upstream, provider, result),
      this.#duration.with(model, upstream),
      this.#firstByte.with(model, upstream),
      (direction) => this.#tokens.with(model, upstream, direction),
      () => this.#cachedTokens.with(model, upstream),
      (phase) => this.#interruptions.with(upstream, phase),
    );
  }

  /** `model` is a configured name, or '' for an unknown one: a client's text is never a label. */
  rejected(model: string, reason: RejectionReason): void {
    this.#rejected.with(model, reason).add();
  }

  probed(upstream: string, provider: string, ok: boolean): void {
    this.#probes.with(upstream, provider, ok ? 'ok' : 'fail').add();
  }

  failed(upstream: string, provider: string, name: ErrorClass): void {
    this.#failures.with(upstream, provider, name).add();
  }

  /** Whether the conversation of an answered request stayed where it was. */
  attached(model: string, outcome: AffinityOutcome): void {
    this.#affinity.with(model, outcome).add();
  }

  pluginFailed(plugin: string, hook: string): void {
    this.#pluginErrors.with(plugin, hook).add();
  }

  /** Where the gauges of upstreams come from; asked at each scrape. */
  set upstreamStates(source: () => Iterable<UpstreamState>) {
    this.#upstreams = source;
  }

  /** Only where replicas share anything. */
  shared(degraded: () => boolean): void {
    new Gauge({
      name: 'llm_proxy_state_degraded',
      help: 'Whether the store that replicas share is out of reach.',
      registers: [this.registry],
      collect() {
        this.set(degraded() ? 1 : 0);
      },
    });
  }

  #registerGauges(
    build: { readonly version: string; readonly node: string },
    logLinesDropped: () => number,
  ): void {
    const registers = [this.registry];
    const gauge = (name: string, help: string, read: (state: UpstreamState) => number) => {
      const upstreams = () => this.#upstreams();
      return new Gauge({
        name,
        help,
        labelNames: ['upstream', 'provider'],
        registers,
        collect() {
          for (const state of upstreams())
            this.set({ upstream: state.id, provider: state.provider }, read(state));
        },
      });
    };
    gauge('llm_proxy_upstream_inflight', 'Slots held at this moment.', (state) => state.inflight);
    gauge('llm_proxy_upstream_fail_streak', 'Failures in a row.', (state) => state.failStreak);
    gauge(
      'llm_proxy_upstream_cooling_seconds',
      'Rest that is left; 0 = alive.',
      (state) => state.coolingSeconds,
    );
    new Gauge({
      name: 'llm_proxy_build_info',
      help: 'Always 1.',
      labelNames: ['version', 'node'],
      registers,
    }).set({ version: build.version, node: build.node }, 1);
    new Gauge({
      name: 'llm_proxy_log_lines_dropped',
      help: 'Log lines dropped because their reader was too slow or gone.',
      registers,
      collect() {
        this.set(logLinesDropped());
      },
    });
  }
}
