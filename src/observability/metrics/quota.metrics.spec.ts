import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { QuotaMetrics, type QuotaState } from './quota.metrics.js';

const state = (scope: string, id: string, remaining: number, unit = 'tokens'): QuotaState => ({
  scope, id, unit, per: 'P1D', remaining,
}); // prettier-ignore

async function shown(limit: number, states: readonly QuotaState[]): Promise<string[]> {
  const registry = new Registry();
  const metrics = new QuotaMetrics(registry, limit);
  metrics.remaining = () => states;
  const told = /^llm_proxy_quota_remaining\{scope="(\w+)",id="(\w+)",unit="(\w+)",per="P1D"\} (\S+)$/gm;
  return [...(await registry.metrics()).matchAll(told)].map((found) => found.slice(1).join(' '));
}

describe('llm_proxy_quota_remaining', () => {
  it('names as many consumers as it may, and of the rest the one with the least', async () => {
    const states = [
      state('consumer', 'a', 10),
      state('consumer', 'a', 3, 'requests'),
      state('consumer', 'b', 20),
      state('consumer', 'c', 30),
      state('consumer', 'd', 5),
      state('consumer', 'd', 7, 'requests'),
      state('consumer', 'e', 40),
    ];
    expect(await shown(2, states)).toEqual([
      'consumer a tokens 10',
      'consumer a requests 3',
      'consumer b tokens 20',
      'consumer other tokens 5',
      'consumer other requests 7',
    ]);
    expect(await shown(0, states)).toEqual(['consumer other tokens 5', 'consumer other requests 3']);
    expect(await shown(5, states)).toHaveLength(7);
  });

  it('names all that are no consumers', async () => {
    const states = ['a', 'b', 'c'].map((id) => state('upstream', id, 1));
    expect(await shown(1, states)).toEqual([
      'upstream a tokens 1',
      'upstream b tokens 1',
      'upstream c tokens 1',
    ]);
  });
});
