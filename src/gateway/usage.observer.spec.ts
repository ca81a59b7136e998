import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { SseEvent } from '../common/sse/sse-event.js';
import { GatewayMetrics } from '../observability/metrics/gateway.metrics.js';
import { UsageObserver } from './usage.observer.js';

const seen = (...events: object[]): UsageObserver => {
  const observer = new UsageObserver();
  for (const event of events) observer.observe(SseEvent.of(JSON.stringify(event)));
  return observer;
};

describe('UsageObserver', () => {
  it.each([
    ["OpenAI's chat", { usage: { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 } }, 7, 5],
    [
      'with cached tokens inside of them',
      { usage: { prompt_tokens: 7, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 4 } } },
      7,
      5,
    ],
    [
      "OpenAI's responses",
      { type: 'response.completed', response: { usage: { input_tokens: 7, output_tokens: 5 } } },
      7,
      5,
    ],
    ['a whole response', { object: 'response', usage: { input_tokens: 7, output_tokens: 5 } }, 7, 5],
    [
      'Anthropic, with cached tokens beside them',
      {
        usage: {
          input_tokens: 7,
          cache_creation_input_tokens: 100,
          cache_read_input_tokens: 1000,
          output_tokens: 5,
        },
      },
      1107,
      5,
    ],
    ['embeddings', { usage: { prompt_tokens: 9, total_tokens: 9 } }, 9, 0],
    ['a total alone', { usage: { total_tokens: 9 } }, 9, 0],
  ])('reads %s', (_what, event, input, output) => {
    expect(seen(event)).toMatchObject({ tokens: { input, output }, complete: true });
  });

  it('takes the last of running totals', () => {
    const total = (tokens: number) => ({
      choices: [{ delta: {} }],
      usage: { prompt_tokens: 7, completion_tokens: tokens },
    });
    expect(seen(total(1), total(2), total(30)).tokens).toEqual({ input: 7, output: 30 });
  });

  it("puts the two halves of Anthropic's stream together", () => {
    const begun = {
      type: 'message_start',
      message: { usage: { input_tokens: 20, cache_read_input_tokens: 5, output_tokens: 1 } },
    };
    expect(seen(begun)).toMatchObject({ tokens: { input: 25, output: 1 }, complete: false });
    const ended = { type: 'message_delta', delta: {}, usage: { output_tokens: 40 } };
    expect(seen(begun, ended)).toMatchObject({ tokens: { input: 25, output: 40 }, complete: true });
  });

  it.each([
    null,
    5,
    'x',
    [],
    { prompt_tokens: '7', completion_tokens: -1 },
    { prompt_tokens: null },
    { prompt_tokens: 1e300, completion_tokens: 2 ** 53 },
  ])('does not believe a usage of %j, and forgets nothing for it', (usage) => {
    expect(seen({ usage }).tokens).toEqual({ input: 0, output: 0 });
    expect(
      seen({ usage: { prompt_tokens: 3, completion_tokens: 4 } }, { choices: [], usage }).tokens,
    ).toEqual({
      input: 3,
      output: 4,
    });
  });

  it('is not misled by an answer that speaks of usage', () => {
    const observer = seen({
      choices: [{ delta: { content: '"usage"' } }],
      message: { usage: { input_tokens: 9 } },
    });
    expect(observer.tokens).toEqual({ input: 0, output: 0 });
  });

  it('books what it saw once, and nothing where it saw nothing', async () => {
    const registry = new Registry();
    const metrics = new GatewayMetrics(registry, { version: '0', node: '0' }, () => 0);
    const series = metrics.attempts('m', 'u', 'p');
    new UsageObserver().settle(series);
    expect(await registry.metrics()).not.toContain('llm_proxy_tokens_total{');
    seen({ usage: { input_tokens: 7, output_tokens: 5 } }).settle(series);
    expect(await registry.metrics()).toContain(
      'llm_proxy_tokens_total{model="m",upstream="u",direction="input"} 7',
    );
  });
});
