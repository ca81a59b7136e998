import type { JsonDocument } from '../common/json/json-document.js';
import type { SseEvent } from '../common/sse/sse-event.js';
import type { StreamObserver } from '../contracts/stream.js';
import type { AttemptSeries } from '../observability/metrics/gateway.metrics.js';

const NEEDLES = ['"usage"'] as const;

/** The names of what goes in and comes out, in the words of each API. */
const INPUT = ['prompt_tokens', 'input_tokens'] as const;
const OUTPUT = ['completion_tokens', 'output_tokens'] as const;
/** Beside `input_tokens`, not inside of it. */
const CACHED_INPUT = ['cache_creation_input_tokens', 'cache_read_input_tokens'] as const;
const COUNTED = [...INPUT, ...OUTPUT, ...CACHED_INPUT, 'total_tokens'] as const;

type Usage = Readonly<Record<string, unknown>>;

/**
 * Reads `usage` where it passes by: of OpenAI's chat and responses, and of Anthropic's messages. In a stream the last one
 * counts, field by field: some providers send a running total with each event, others a part at each end.
 */
export class UsageObserver implements StreamObserver {
  readonly needles = NEEDLES;
  #cached: unknown;
  #complete = false;
  #last: Map<string, number> | null = null;

  /** What was told so far; 0 where nothing was. */
  get tokens(): { readonly input: number; readonly output: number } {
    let input = this.#first(INPUT);
    for (const name of CACHED_INPUT) input += this.#last?.get(name) ?? 0;
    const output = this.#first(OUTPUT);
    return { input: input + output === 0 ? this.#first(['total_tokens']) : input, output };
  }

  /** False where only the beginning of an answer told something. */
  get complete(): boolean {
    return this.#complete;
  }

  observe(event: SseEvent): void {
    const { json } = event;
    if (json !== undefined) this.#read(json);
  }

  whole(answer: JsonDocument): void {
    this.#read(answer);
  }

  /** Books what was seen; once, at the end of the attempt. */
  settle(series: AttemptSeries): void {
    if (this.#last === null) return;
    const { input, output } = this.tokens;
    series.countTokens(input, output, this.#cached);
  }

  #read(document: JsonDocument): void {
    const usage = document.get('usage');
    if (isUsage(usage)) {
      this.#complete = true;
      this.#keep(usage);
    } else if (!document.has('choices')) {
      this.#readInside(document);
    }
  }

  /** Events that wrap the answer they tell of. */
  #readInside(document: JsonDocument): void {
    const ended = document.object('response')?.get('usage');
    const begun = document.object('message')?.get('usage');
    if (isUsage(ended)) this.#complete = true;
    for (const usage of [ended, begun]) if (isUsage(usage)) this.#keep(usage);
  }

  #keep(usage: Usage): void {
    this.#last ??= new Map();
    this.#cached = cachedOf(usage) ?? this.#cached;
    for (const name of COUNTED) {
      const value = usage[name];
      if (isCount(value)) this.#last.set(name, value);
    }
  }

  #first(names: readonly string[]): number {
    for (const name of names) {
      const value = this.#last?.get(name);
      if (value !== undefined) return value;
    }
    return 0;
  }
}

function isUsage(value: unknown): value is Usage {
  return typeof value === 'object' && value !== null;
}

/** As OpenAI says it, as Anthropic does, as DeepSeek does. */
function cachedOf(usage: Usage): unknown {
  const details = usage['prompt_tokens_details'] ?? usage['input_tokens_details'];
  if (typeof details === 'object' && details !== null) {
    const { cached_tokens: cached } = details as Record<string, unknown>;
    if (cached !== undefined && cached !== null) return cached;
  }
  return usage['cache_read_input_tokens'] ?? usage['prompt_cache_hit_tokens'];
}

/** Trap: a finite number may still be so large that two of them are none. */
function isCount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}
