import type { JsonDocument } from '../common/json/json-document.js';
import type { SseEvent } from '../common/sse/sse-event.js';
import type { StreamObserver } from '../contracts/stream.js';
import type { AttemptSeries } from '../observability/metrics/gateway.metrics.js';

const NEEDLES = ['"usage"'] as const;

/** Reads `usage` where it passes by. In a stream the last one counts: some providers send a running total with each event. */
export class UsageObserver implements StreamObserver {
  readonly needles = NEEDLES;
  #input: unknown;
  #output: unknown;

  observe(event: SseEvent): void {
    const { json } = event;
    if (json !== undefined) this.#read(json);
  }

  whole(answer: JsonDocument): void {
    this.#read(answer);
  }

  /** Books what was seen; once, at the end of the attempt. */
  settle(series: AttemptSeries): void {
    series.countTokens(this.#input, this.#output);
  }

  #read(document: JsonDocument): void {
    const usage = document.get('usage');
    if (typeof usage !== 'object' || usage === null) return;
    const { prompt_tokens: input, completion_tokens: output } = usage as Record<string, unknown>;
    this.#input = input;
    this.#output = output;
  }
}
