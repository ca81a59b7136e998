import { describe, expect, it } from 'vitest';
import { ManualWallClock } from '../../test/support/manual-wall-clock.js';
import type { QuotaConfig } from '../config/gateway-config.js';
import { QuotaMeter } from './quota-meter.js';
import { QuotaSet } from './quota-set.js';
import { Spending } from './spending.js';

const per = (text: string, ms: number) => ({ text, ms });
const MINUTE = per('PT1M', 60_000);
const DAY = per('P1D', 86_400_000);

function setUp(...quotas: Partial<QuotaConfig>[]) {
  const clock = new ManualWallClock();
  const meters = quotas.map(
    (quota) =>
      new QuotaMeter({ unit: 'requests', limit: 2, per: MINUTE, window: 'calendar', ...quota }, [], clock.ms),
  );
  const set = new QuotaSet(meters, clock.now);
  return { clock, set, remaining: () => meters.map((meter) => meter.remaining(clock.ms)) };
}

describe('QuotaSet', () => {
  it('is closed until the latest of its used-up windows turns', () => {
    const { clock, set } = setUp({ limit: 1 }, { limit: 1, per: DAY }, { limit: 9, per: per('P1M', 0) });
    expect(set.closedMs()).toBe(0);
    set.reserve(0);
    clock.ms += 1000;
    expect(set.closedMs()).toBe(86_400_000 - 1000);
  });

  it('turns with the longest of its windows', () => {
    const { clock, set } = setUp({}, { per: DAY }, { per: MINUTE, window: 'sliding' });
    clock.ms += 1000;
    expect(set.turnsInMs()).toBe(86_400_000 - 1000);
    expect(setUp({ window: 'sliding' }).set.turnsInMs()).toBe(60_000);
  });

  it('reserves of all its meters, or of none', () => {
    const { set, remaining } = setUp({ limit: 5 }, { limit: 1 });
    expect(set.reserve(0)).not.toBeNull();
    expect(set.reserve(0)).toBeNull();
    expect(remaining()).toEqual([4, 0]);
  });

  it('knows whether tokens matter', () => {
    expect(setUp({}).set.countsTokens).toBe(false);
    expect(setUp({}, { unit: 'tokens' }).set.countsTokens).toBe(true);
  });

  it('settles, or gives back, all of it once', () => {
    const { set, remaining } = setUp({ limit: 5 }, { unit: 'tokens', limit: 100 });
    const [sent, unsent] = [set.reserve(40), set.reserve(40)];
    expect(remaining()).toEqual([3, 20]);
    unsent?.giveBack();
    sent?.settle(10);
    sent?.giveBack();
    unsent?.settle(50);
    expect(remaining()).toEqual([4, 90]);
  });
});

describe('Spending: what a request of a consumer spends over all its attempts', () => {
  it('counts one request, and the tokens of every attempt', () => {
    const { set, remaining } = setUp({ limit: 5 }, { unit: 'tokens', limit: 100 });
    const ticket = set.reserve(30);
    if (ticket === null) throw new Error('unreachable');
    const spending = new Spending(ticket);
    expect(spending.countsTokens).toBe(true);
    spending.add(5);
    spending.add(20);
    spending.end();
    spending.end();
    expect(remaining()).toEqual([4, 75]);
  });

  it('gives a request back that reached no provider', () => {
    const { set, remaining } = setUp({ limit: 5 }, { unit: 'tokens', limit: 100 });
    const ticket = set.reserve(30);
    if (ticket === null) throw new Error('unreachable');
    new Spending(ticket).end();
    expect(remaining()).toEqual([5, 100]);
  });
});
