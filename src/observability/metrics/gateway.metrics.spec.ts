import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { GatewayMetrics } from './gateway.metrics.js';

function setUp() {
  const registry = new Registry();
  const metrics = new GatewayMetrics(registry, { version: '1.2.3', node: 'v24' }, () => 7);
  const lines = async () => (await registry.metrics()).split('\n').filter((line) => !line.startsWith('#'));
  return { metrics, lines };
}

describe('GatewayMetrics', () => {
  it('has the names and labels of the specification', async () => {
    const { metrics, lines } = setUp();
    metrics.attempts('m', 'u', 'p').count('5xx');
    metrics.probed('u', 'p', true);
    metrics.probed('u', 'p', false);
    metrics.rejected('', 'unknown_model');
    expect(await lines()).toEqual(
      expect.arrayContaining([
        'llm_proxy_requests_total{model="m",upstream="u",provider="p",result="5xx"} 1',
        'llm_proxy_probe_pings_total{upstream="u",provider="p",result="ok"} 1',
        'llm_proxy_probe_pings_total{upstream="u",provider="p",result="fail"} 1',
        'llm_proxy_rejected_total{model="",reason="unknown_model"} 1',
        'llm_proxy_build_info{version="1.2.3",node="v24"} 1',
        'llm_proxy_log_lines_dropped 7',
        'llm_proxy_request_duration_seconds_count{model="m",upstream="u"} 0',
        'llm_proxy_first_byte_seconds_count{model="m",upstream="u"} 0',
      ]),
    );
  });

  it('asks for the state of the upstreams at each scrape', async () => {
    const { metrics, lines } = setUp();
    let coolingSeconds = 2.5;
    metrics.upstreamStates = () => [{ id: 'u', provider: 'p', inflight: 3, failStreak: 2, coolingSeconds }];
    expect(await lines()).toEqual(
      expect.arrayContaining([
        'llm_proxy_upstream_inflight{upstream="u",provider="p"} 3',
        'llm_proxy_upstream_fail_streak{upstream="u",provider="p"} 2',
        'llm_proxy_upstream_cooling_seconds{upstream="u",provider="p"} 2.5',
      ]),
    );
    coolingSeconds = 0;
    expect(await lines()).toContain('llm_proxy_upstream_cooling_seconds{upstream="u",provider="p"} 0');
  });

  it('believes only finite, positive numbers of tokens', async () => {
    const { metrics, lines } = setUp();
    const series = metrics.attempts('m', 'u', 'p');
    for (const wrong of [-1, 0, NaN, Infinity, '5', null, undefined, {}, true, 10n])
      series.countTokens(wrong, wrong, wrong);
    expect((await lines()).some((line) => line.includes('_tokens_total{'))).toBe(false);
    series.countTokens(7, undefined, undefined);
    series.countTokens(1.5, 2, undefined);
    expect(await lines()).toEqual(
      expect.arrayContaining([
        'llm_proxy_tokens_total{model="m",upstream="u",direction="input"} 8.5',
        'llm_proxy_tokens_total{model="m",upstream="u",direction="output"} 2',
      ]),
    );
  });
});
