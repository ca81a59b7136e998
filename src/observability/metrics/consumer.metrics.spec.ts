import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { ConsumerMetrics } from './consumer.metrics.js';

async function lines(registry: Registry): Promise<string[]> {
  return (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

describe('ConsumerMetrics', () => {
  it('counts by consumer, model and result, and only amounts of tokens', async () => {
    const registry = new Registry();
    const metrics = new ConsumerMetrics(registry, 10);
    metrics.of('a').counted('m', 'ok');
    metrics.of('a').counted('m', 'ok');
    metrics.of('a').counted('n', '5xx');
    metrics.of('b').counted('m', 'ok');
    metrics.of('a').tokens('m', 3, 4);
    metrics.of('a').tokens('m', 5, NaN);
    metrics.of('a').tokens('m', -1, 'x');
    metrics.of('b').tokens('m', undefined, 0);
    expect(await lines(registry)).toEqual([
      'llm_proxy_consumer_requests_total{consumer="a",model="m",result="ok"} 2',
      'llm_proxy_consumer_requests_total{consumer="a",model="n",result="5xx"} 1',
      'llm_proxy_consumer_requests_total{consumer="b",model="m",result="ok"} 1',
      'llm_proxy_consumer_tokens_total{consumer="a",model="m",direction="input"} 8',
      'llm_proxy_consumer_tokens_total{consumer="a",model="m",direction="output"} 4',
    ]);
  });

  it('names the first consumers and counts the rest together', async () => {
    const registry = new Registry();
    const metrics = new ConsumerMetrics(registry, 2);
    for (const consumer of ['a', 'b', 'c', 'd', 'a']) metrics.of(consumer).counted('m', 'ok');
    metrics.of('d').tokens('m', 1, 1);
    metrics.of('b').tokens('m', 1, 0);
    expect(await lines(registry)).toEqual([
      'llm_proxy_consumer_requests_total{consumer="a",model="m",result="ok"} 2',
      'llm_proxy_consumer_requests_total{consumer="b",model="m",result="ok"} 1',
      'llm_proxy_consumer_requests_total{consumer="other",model="m",result="ok"} 2',
      'llm_proxy_consumer_tokens_total{consumer="other",model="m",direction="input"} 1',
      'llm_proxy_consumer_tokens_total{consumer="other",model="m",direction="output"} 1',
      'llm_proxy_consumer_tokens_total{consumer="b",model="m",direction="input"} 1',
    ]);
  });
});
