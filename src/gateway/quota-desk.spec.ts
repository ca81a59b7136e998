import 'reflect-metadata';
import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { ManualWallClock } from '../../test/support/manual-wall-clock.js';
import { GatewayError } from '../common/errors/gateway-error.js';
import { JsonDocument } from '../common/json/json-document.js';
import { CHAT, operationOf } from '../contracts/operation.js';
import { QuotaMetrics } from '../observability/metrics/quota.metrics.js';
import type { QuotaHold } from '../quotas/quota-hold.js';
import { QuotaMeter } from '../quotas/quota-meter.js';
import { QuotaSet } from '../quotas/quota-set.js';
import type { CompiledTarget } from './compiled-target.js';
import type { GatewayExchange } from './gateway-exchange.js';
import { QuotaDesk } from './quota-desk.js';

const BODY = '{"max_tokens":10,"x":"abcdefghijklmn"}';

function setUp() {
  const clock = new ManualWallClock();
  const per = { text: 'PT1M', ms: 60_000 };
  const setOf = (unit: 'tokens' | 'requests', limit: number) => {
    const meter = new QuotaMeter({ unit, limit, per, window: 'calendar' }, [], clock.ms);
    return { set: new QuotaSet([meter], clock.now), left: () => meter.remaining(clock.ms) };
  };
  const exchange = {
    body: JsonDocument.parse(Buffer.from(BODY)),
    spending: null,
    input: { operation: CHAT },
  } as unknown as GatewayExchange;
  const target = (quota: QuotaSet | null) =>
    ({ quota, candidate: { upstream: { id: 'u' } } }) as unknown as CompiledTarget;
  return { clock, desk: new QuotaDesk(new QuotaMetrics(new Registry(), 10)), exchange, setOf, target };
}

describe('QuotaDesk', () => {
  it('has nothing to do where no quota counts', () => {
    const { desk, exchange, target } = setUp();
    expect(desk.take(exchange, target(null))).toBeNull();
  });

  it('reserves bytes / 4 and the limit of the answer', () => {
    const { desk, exchange, setOf, target } = setUp();
    const { left, set } = setOf('tokens', 1000);
    expect(desk.take(exchange, target(set))).toMatchObject({ countsTokens: true });
    expect(left()).toBe(1000 - 10 - Math.ceil(BODY.length / 4));
  });

  it('reserves no tokens for a question about a request', () => {
    const { desk, exchange, setOf, target } = setUp();
    const { left, set } = setOf('tokens', 1000);
    Object.assign(exchange.input, { operation: operationOf('count_tokens') });
    expect(desk.take(exchange, target(set))).toMatchObject({ countsTokens: true });
    expect(left()).toBe(1000);
  });

  it('says that a candidate is used up, and reserves nothing then', () => {
    const { desk, exchange, setOf, target } = setUp();
    const { left, set } = setOf('requests', 1);
    void desk.take(exchange, target(set));
    expect(desk.take(exchange, target(set))).toBe('used up');
    expect(left()).toBe(0);
  });

  it('opens the spending of a consumer, or refuses with the time until its window turns', () => {
    const { clock, desk, exchange, setOf, target } = setUp();
    const { left, set } = setOf('requests', 1);
    void desk.open(exchange, set, "this consumer's");
    expect(left()).toBe(0);
    expect(desk.take(exchange, target(null))).not.toBeNull();
    clock.ms += 20_000;
    const refused = () => desk.open(exchange, set, "this consumer's");
    expect(refused).toThrow(GatewayError);
    expect(refused).toThrow("this consumer's quota is used up, retry in 40s");
    exchange.spending?.end();
    expect(left()).toBe(1);
  });

  describe('where other replicas have a say', () => {
    const asked = (hold: QuotaHold | null) => {
      const scene = setUp();
      const { left, set } = scene.setOf('requests', 1);
      const [meter] = set.meters;
      if (meter === undefined) throw new Error('unreachable');
      meter.peers = { ok: true, take: () => Promise.resolve(hold) };
      return { ...scene, left, meter, set };
    };
    const hold = () => {
      const told: string[] = [];
      return { told, settle: () => void told.push('settled'), giveBack: () => void told.push('given back') };
    };

    it('waits for what they say', async () => {
      const held = hold();
      const { desk, exchange, set, target } = asked(held);
      const quota = await desk.take(exchange, target(set));
      if (quota === null || quota === 'used up') throw new Error('it was let in');
      quota.giveBack();
      expect(held.told).toEqual(['given back']);
      const none = asked(null);
      expect(await none.desk.take(none.exchange, none.target(none.set))).toBe('used up');
    });

    it('asks nobody where nothing is left', () => {
      const { clock, desk, exchange, meter, set, target } = asked(hold());
      meter.reserve(0, clock.ms);
      expect(desk.take(exchange, target(set))).toBe('used up');
    });

    it('opens the spending of a consumer, or says why not', async () => {
      const { desk, exchange, set } = asked(hold());
      await desk.open(exchange, set, "the consumer's");
      expect(exchange.spending).not.toBeNull();
      const none = asked(null);
      // Nobody has said that it is used up: they did not answer.
      await expect(none.desk.open(none.exchange, none.set, '')).rejects.toMatchObject({
        status: 503,
        code: 'state_unavailable',
      });
      const shut = asked(null);
      const opening = shut.desk.open(shut.exchange, shut.set, '');
      shut.meter.shut(5000, shut.clock.ms);
      await expect(opening).rejects.toMatchObject({ status: 429, code: 'quota_exhausted' });
    });
  });
});
