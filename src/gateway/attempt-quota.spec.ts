import { describe, expect, it } from 'vitest';
import { ManualWallClock } from '../../test/support/manual-wall-clock.js';
import { JsonDocument } from '../common/json/json-document.js';
import { SseEvent } from '../common/sse/sse-event.js';
import type { AttemptResult } from '../contracts/exchange.js';
import { CounterSeries } from '../observability/metrics/series.js';
import { QuotaMeter } from '../quotas/quota-meter.js';
import { QuotaSet } from '../quotas/quota-set.js';
import { Spending } from '../quotas/spending.js';
import { AttemptQuota } from './attempt-quota.js';
import type { GatewayAttempt } from './gateway-attempt.js';
import { UsageObserver } from './usage.observer.js';

/** 100 bytes: 25 tokens by the estimate. */
const BODY = JSON.stringify({ stream: true, filler: 'x'.repeat(73) });

function setUp() {
  const clock = new ManualWallClock();
  const per = { text: 'P1D', ms: 86_400_000 };
  const meterOf = (unit: 'tokens' | 'requests') =>
    new QuotaMeter({ unit, limit: 1000, per, window: 'calendar' }, [], clock.ms);
  const [tokens, requests, consumer] = [meterOf('tokens'), meterOf('requests'), meterOf('tokens')];
  const ticket = new QuotaSet([tokens, requests], clock.now).reserve(500);
  const consumers = new QuotaSet([consumer], clock.now).reserve(500);
  if (ticket === null || consumers === null) throw new Error('unreachable');
  const spending = new Spending(consumers);
  const estimated = new CounterSeries();
  const quota = new AttemptQuota(ticket, spending, estimated);
  const used = () => ({
    tokens: 1000 - tokens.remaining(clock.ms),
    requests: 1000 - requests.remaining(clock.ms),
    estimated: estimated.value,
  });
  const body = JsonDocument.parse(Buffer.from(BODY));
  const attempt = { body } as unknown as GatewayAttempt;
  const consumed = () => {
    spending.end();
    return 1000 - consumer.remaining(clock.ms);
  };
  return { attempt, consumed, quota, spending, ticket, used };
}

function usageOf(...events: object[]): UsageObserver {
  const usage = new UsageObserver();
  for (const event of events) usage.observe(SseEvent.of(JSON.stringify(event)));
  return usage;
}

const TOLD = { usage: { prompt_tokens: 7, completion_tokens: 5 } };

describe('AttemptQuota', () => {
  it('counts what the provider said', () => {
    const { attempt, consumed, quota, used } = setUp();
    quota.shaped(attempt, false);
    quota.answerBytes = 4000;
    quota.end(true, 'ok', usageOf(TOLD));
    expect(used()).toEqual({ tokens: 12, requests: 1, estimated: 0 });
    expect(consumed()).toBe(12);
  });

  it('estimates nothing where nothing is generated', () => {
    const { attempt, consumed, ticket, spending, used } = setUp();
    const quota = new AttemptQuota(ticket, spending, null);
    quota.shaped(attempt, false);
    quota.answerBytes = 400;
    quota.end(true, 'ok', usageOf());
    expect(used()).toEqual({ tokens: 0, requests: 1, estimated: 0 });
    expect(consumed()).toBe(0);
  });

  it.each([
    ['ok', 400, 125],
    ['cancelled', 40, 35],
    ['cancelled', 0, 25],
    ['net_err', 4, 26],
    ['timeout', 0, 25],
  ] as const)('estimates an answer without usage (%s after %d bytes): %d', (result, bytes, tokens) => {
    const { attempt, consumed, quota, used } = setUp();
    quota.shaped(attempt, false);
    quota.answerBytes = bytes;
    quota.end(true, result, new UsageObserver());
    expect(used()).toEqual({ tokens, requests: 1, estimated: tokens });
    expect(consumed()).toBe(tokens);
  });

  it('does not believe that an answer cost nothing', () => {
    const { attempt, quota, used } = setUp();
    quota.shaped(attempt, false);
    quota.end(true, 'ok', usageOf({ usage: { prompt_tokens: 0, completion_tokens: 0 } }));
    expect(used()).toEqual({ tokens: 25, requests: 1, estimated: 25 });
  });

  it.each(['4xx', '429', '402', '5xx'] satisfies AttemptResult[])(
    'counts a request, and no tokens, where the provider refused with %s',
    (result) => {
      const { attempt, consumed, quota, used } = setUp();
      quota.shaped(attempt, false);
      quota.answerBytes = 900;
      quota.end(true, result, new UsageObserver());
      expect(used()).toEqual({ tokens: 0, requests: 1, estimated: 0 });
      expect(consumed()).toBe(0);
    },
  );

  it('believes the price of the request, and estimates the rest, where a stream of Anthropic broke', () => {
    const { attempt, quota, used } = setUp();
    quota.shaped(attempt, false);
    quota.answerBytes = 400;
    const begun = { type: 'message_start', message: { usage: { input_tokens: 300, output_tokens: 1 } } };
    quota.end(true, 'cancelled', usageOf(begun));
    expect(used()).toEqual({ tokens: 400, requests: 1, estimated: 99 });
  });

  it('gives everything back where the provider never got the request', () => {
    const { attempt, consumed, quota, used } = setUp();
    quota.shaped(attempt, false);
    quota.end(false, 'net_err', new UsageObserver());
    expect(used()).toEqual({ tokens: 0, requests: 0, estimated: 0 });
    expect(consumed()).toBe(0);
  });

  it('ends once', () => {
    const { attempt, quota, used } = setUp();
    quota.shaped(attempt, false);
    quota.end(true, 'ok', usageOf(TOLD));
    quota.giveBack();
    quota.end(true, 'ok', usageOf(TOLD));
    expect(used()).toEqual({ tokens: 12, requests: 1, estimated: 0 });
    const other = setUp();
    other.quota.giveBack();
    other.quota.end(true, 'ok', usageOf(TOLD));
    expect(other.used()).toEqual({ tokens: 0, requests: 0, estimated: 0 });
  });

  it('asks for the usage of a stream, where it may', () => {
    const [asking, silent] = [setUp(), setUp()];
    asking.quota.shaped(asking.attempt, true);
    silent.quota.shaped(silent.attempt, false);
    expect([asking.quota.withholdsUsage, silent.quota.withholdsUsage]).toEqual([true, false]);
    expect(asking.attempt.body.object('stream_options')?.isTrue('include_usage')).toBe(true);
    expect(silent.attempt.body.has('stream_options')).toBe(false);
  });

  it('asks for nothing where only requests are counted', () => {
    const { attempt } = setUp();
    const clock = new ManualWallClock();
    const per = { text: 'P1D', ms: 86_400_000 };
    const meter = new QuotaMeter({ unit: 'requests', limit: 9, per, window: 'calendar' }, [], clock.ms);
    const quota = new AttemptQuota(new QuotaSet([meter], clock.now).reserve(0), null, new CounterSeries());
    quota.shaped(attempt, true);
    expect(attempt.body.has('stream_options')).toBe(false);
  });
});
