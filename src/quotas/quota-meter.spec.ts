import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { QuotaConfig } from '../config/gateway-config.js';
import type { QuotaHold } from './quota-hold.js';
import { QuotaMeter } from './quota-meter.js';

const T0 = Date.UTC(2026, 0, 1);
const quota = (
  unit: QuotaConfig['unit'],
  limit: number,
  window: QuotaConfig['window'] = 'calendar',
): QuotaConfig => ({ unit, limit, per: { text: 'PT1M', ms: 60_000 }, window });
const meter = (...parameters: Parameters<typeof quota>): QuotaMeter =>
  new QuotaMeter(quota(...parameters), [], T0);

describe('a meter of requests', () => {
  it('counts a request when it is reserved, once', () => {
    const requests = meter('requests', 2);
    const hold = requests.reserve(1000, T0);
    expect(requests.remaining(T0)).toBe(1);
    hold.settle(5000, T0 + 1);
    hold.settle(5000, T0 + 1);
    expect(requests.remaining(T0 + 1)).toBe(1);
    requests.reserve(0, T0 + 2);
    expect([requests.remaining(T0 + 2), requests.opensInMs(T0 + 2)]).toEqual([0, 59_998]);
  });

  it('gives back what was not sent, once, and nothing after it was settled', () => {
    const requests = meter('requests', 2);
    const [sent, unsent] = [requests.reserve(0, T0), requests.reserve(0, T0)];
    sent.settle(0, T0);
    sent.giveBack(T0);
    unsent.giveBack(T0);
    unsent.giveBack(T0);
    expect(requests.remaining(T0)).toBe(1);
  });

  it('counts a request that runs across a turn in the window in which it was sent', () => {
    const requests = meter('requests', 2);
    const [ended, unsent] = [requests.reserve(0, T0 + 59_000), requests.reserve(0, T0 + 59_000)];
    expect(requests.remaining(T0 + 60_000)).toBe(2);
    ended.settle(0, T0 + 61_000);
    unsent.giveBack(T0 + 61_000);
    expect(requests.remaining(T0 + 61_000)).toBe(2);
  });
});

describe('a meter of tokens', () => {
  it('takes a request while anything is left, and settles for what was really used', () => {
    const tokens = meter('tokens', 20);
    const hold = tokens.reserve(1010, T0);
    expect([tokens.remaining(T0), tokens.opensInMs(T0)]).toEqual([-990, 60_000]);
    hold.settle(12, T0 + 1);
    hold.settle(99, T0 + 1);
    expect([tokens.remaining(T0 + 1), tokens.opensInMs(T0 + 1)]).toEqual([8, 0]);
    tokens.reserve(0, T0 + 2).settle(50, T0 + 2);
    expect(tokens.remaining(T0 + 2)).toBe(-42);
  });

  it('keeps a reservation across a turn, and counts its tokens in the window in which they are known', () => {
    const tokens = meter('tokens', 100);
    tokens.reserve(0, T0).settle(70, T0);
    const running = tokens.reserve(30, T0 + 59_000);
    expect(tokens.remaining(T0 + 59_000)).toBe(0);
    expect(tokens.remaining(T0 + 60_000)).toBe(70);
    running.settle(45, T0 + 61_000);
    expect(tokens.remaining(T0 + 61_000)).toBe(55);
  });

  it('writes reservations down as used: a process that is killed forgets nothing', () => {
    const tokens = meter('tokens', 100);
    tokens.reserve(0, T0).settle(10, T0);
    tokens.reserve(25, T0);
    const again = new QuotaMeter(tokens.quota, tokens.uses(T0), T0 + 1);
    expect(again.remaining(T0 + 1)).toBe(65);
  });
});

describe('a meter', () => {
  it('knows when what is kept has changed', () => {
    for (const unit of ['requests', 'tokens'] as const) {
      const subject = meter(unit, 10);
      const seen = [subject.version];
      const hold = subject.reserve(5, T0);
      seen.push(subject.version);
      if (unit === 'tokens') hold.settle(3, T0);
      else hold.giveBack(T0);
      seen.push(subject.version);
      expect(new Set(seen).size).toBe(3);
    }
  });

  it('agrees with a list of all that happened', () => {
    const plan = fc.array(
      fc.record({
        waitMs: fc.integer({ min: 0, max: 20_000 }),
        act: fc.constantFrom('reserve', 'settle', 'giveBack'),
        tokens: fc.integer({ min: 0, max: 200 }),
        which: fc.nat({ max: 30 }),
      }),
      { maxLength: 80 },
    );
    fc.assert(
      fc.property(fc.constantFrom('requests' as const, 'tokens' as const), plan, (unit, steps) => {
        const subject = meter(unit, 1000);
        const open: { hold: QuotaHold; atMs: number; reserved: number }[] = [];
        const used: { atMs: number; amount: number }[] = [];
        let nowMs = T0;
        for (const { waitMs, act, tokens, which } of steps) {
          nowMs += waitMs;
          const picked = act === 'reserve' ? undefined : open.splice(which % Math.max(1, open.length), 1)[0];
          if (act === 'reserve') {
            open.push({ hold: subject.reserve(tokens, nowMs), atMs: nowMs, reserved: tokens });
            if (unit === 'requests') used.push({ atMs: nowMs, amount: 1 });
          } else if (picked !== undefined) {
            if (act === 'settle') picked.hold.settle(tokens, nowMs);
            else picked.hold.giveBack(nowMs);
            if (act === 'settle' && unit === 'tokens') used.push({ atMs: nowMs, amount: tokens });
            if (act === 'giveBack' && unit === 'requests') used.push({ atMs: picked.atMs, amount: -1 });
          }
          const startMs = nowMs - ((nowMs - T0) % 60_000);
          const inWindow = used
            .filter(({ atMs }) => atMs >= startMs)
            .reduce((all, { amount }) => all + amount, 0);
          const reserved = unit === 'tokens' ? open.reduce((all, one) => all + one.reserved, 0) : 0;
          expect(subject.remaining(nowMs)).toBe(1000 - inWindow - reserved);
          expect(subject.opensInMs(nowMs) === 0).toBe(subject.remaining(nowMs) > 0);
        }
      }),
    );
  });
});
