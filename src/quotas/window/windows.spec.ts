import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Calendar, calendarOf } from './calendar.js';
import { CalendarWindow } from './calendar-window.js';
import type { QuotaWindow } from './quota-window.js';
import { SlidingWindow } from './sliding-window.js';

const LENGTH_MS = 60_000;
const minutes = calendarOf({ text: 'PT1M', ms: LENGTH_MS });
const T0 = Date.UTC(2026, 0, 1);

const makers: readonly (readonly [string, (nowMs: number) => QuotaWindow])[] = [
  ['calendar', (nowMs) => new CalendarWindow(minutes, [], nowMs)],
  ['sliding', (nowMs) => new SlidingWindow(LENGTH_MS, [], nowMs)],
];

/** Steps of time and bookings; a negative amount takes an earlier booking back. */
const steps = fc.array(
  fc.record({
    waitMs: fc.oneof(fc.integer({ min: 0, max: 500 }), fc.integer({ min: 0, max: 90_000 })),
    amount: fc.integer({ min: 1, max: 100 }),
    takeBack: fc.option(fc.nat({ max: 20 }), { freq: 4 }),
  }),
  { maxLength: 120 },
);

interface Booked {
  readonly atMs: number;
  readonly place: number;
  readonly amount: number;
  back: boolean;
}

function run(
  window: QuotaWindow,
  plan: typeof steps extends fc.Arbitrary<infer T> ? T : never,
  check: (nowMs: number, booked: readonly Booked[]) => void,
): void {
  const booked: Booked[] = [];
  let nowMs = T0;
  for (const { waitMs, amount, takeBack } of plan) {
    nowMs += waitMs;
    if (takeBack === null) {
      booked.push({ atMs: nowMs, place: window.book(amount, nowMs), amount, back: false });
    } else {
      const earlier = booked[booked.length - 1 - takeBack];
      if (earlier !== undefined && !earlier.back) {
        window.takeBack(earlier.amount, earlier.place, nowMs);
        earlier.back = true;
      }
    }
    check(nowMs, booked);
  }
}

const sum = (booked: readonly Booked[], counts: (one: Booked) => boolean): number =>
  booked.reduce((total, one) => total + (!one.back && counts(one) ? one.amount : 0), 0);

describe('CalendarWindow', () => {
  it('counts what was booked in the present window', () => {
    const calendars: Calendar[] = [minutes, calendarOf({ text: 'P1M', ms: 30 * 86_400_000 })];
    fc.assert(
      fc.property(fc.constantFrom(...calendars), steps, (calendar, plan) => {
        const window = new CalendarWindow(calendar, [], T0);
        run(window, plan, (nowMs, booked) => {
          const { startMs } = calendar(nowMs);
          expect(window.used(nowMs)).toBe(sum(booked, ({ atMs }) => atMs >= startMs));
        });
      }),
    );
  });

  it('opens exactly when the calendar turns', () => {
    const window = new CalendarWindow(minutes, [], T0);
    window.book(3, T0 + 59_000);
    expect([window.opensInMs(4, T0 + 59_500), window.opensInMs(3, T0 + 59_500)]).toEqual([0, 500]);
    expect([window.used(T0 + 59_999), window.used(T0 + 60_000)]).toEqual([3, 0]);
  });

  it('gives nothing back to a window that did not count it', () => {
    const window = new CalendarWindow(minutes, [], T0);
    const place = window.book(1, T0);
    window.book(1, T0 + 60_000);
    window.takeBack(1, place, T0 + 60_001);
    expect(window.used(T0 + 60_001)).toBe(1);
  });

  it('keeps both sides of a turn when the clock is set back over it', () => {
    const window = new CalendarWindow(minutes, [], T0);
    window.book(5, T0 + 59_000);
    window.book(2, T0 + 60_001);
    expect(window.used(T0 + 59_500)).toBe(7);
    expect(window.opensInMs(7, T0 + 59_500)).toBe(500);
    expect(window.used(T0 + 60_000)).toBe(0);
  });

  it('is not closed for a year by a clock that was a year ahead', () => {
    const window = new CalendarWindow(minutes, [], T0);
    window.book(5, T0 + 365 * 86_400_000);
    expect(window.used(T0)).toBe(5);
    expect(window.opensInMs(5, T0)).toBe(60_000);
  });
});

describe('SlidingWindow', () => {
  it('counts each use for the length of the window, and at most 1/120 longer', () => {
    fc.assert(
      fc.property(steps, (plan) => {
        const window = new SlidingWindow(LENGTH_MS, [], T0);
        run(window, plan, (nowMs, booked) => {
          const used = window.used(nowMs);
          expect(used).toBeGreaterThanOrEqual(sum(booked, ({ atMs }) => atMs + LENGTH_MS > nowMs));
          expect(used).toBeLessThanOrEqual(
            sum(booked, ({ atMs }) => atMs + LENGTH_MS + LENGTH_MS / 120 > nowMs),
          );
        });
      }),
    );
  });

  it('opens when it says so, and not before', () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 300 }), (plan, room) => {
        const window = new SlidingWindow(LENGTH_MS, [], T0);
        run(window, plan, (nowMs) => {
          const opensInMs = window.opensInMs(room, nowMs);
          const copy = (): SlidingWindow => new SlidingWindow(LENGTH_MS, window.uses(nowMs), nowMs);
          expect(copy().used(nowMs + opensInMs)).toBeLessThan(room);
          if (opensInMs > 0)
            expect(copy().used(nowMs + Math.ceil(opensInMs) - 1)).toBeGreaterThanOrEqual(room);
        });
      }),
    );
  });

  it('does not join what was written down with what comes later', () => {
    const written = [
      [T0 + 499, 1],
      [T0 + 500, 1],
    ] as const;
    const window = new SlidingWindow(LENGTH_MS, written, T0 + 501);
    window.book(1, T0 + 502);
    const left = [59_999, 60_498, 60_499, 60_500, 60_501, 60_502].map((atMs) => window.used(T0 + atMs));
    expect(left).toEqual([3, 3, 2, 1, 1, 0]);
  });

  it('keeps few buckets for any number of uses', () => {
    const window = new SlidingWindow(LENGTH_MS, [], T0);
    let most = 0;
    for (let i = 0; i < 20_000; i++) {
      window.book(1, T0 + i * 7);
      most = Math.max(most, window.uses(T0 + i * 7).length);
    }
    expect(most).toBeGreaterThan(100);
    expect(most).toBeLessThanOrEqual(122);
  });

  it('lets uses leave one by one', () => {
    const window = new SlidingWindow(LENGTH_MS, [], T0);
    for (const atMs of [0, 10_000, 20_000]) window.book(1, T0 + atMs);
    expect([3, 2, 1].map((room) => window.opensInMs(room, T0 + 20_000))).toEqual([40_000, 50_000, 60_000]);
    expect([60_000, 70_000, 80_000].map((atMs) => window.used(T0 + atMs))).toEqual([2, 1, 0]);
  });
});

describe.each(makers)('the %s window', (_name, make) => {
  it('never counts less because the clock was set back, and never stays closed for longer than its length', () => {
    const jumps = fc.array(
      fc.record({
        stepMs: fc.oneof(fc.integer({ min: -5000, max: 20_000 }), fc.integer({ min: -1e12, max: 20_000 })),
        amount: fc.nat({ max: 10 }),
      }),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(jumps, (plan) => {
        const window = make(T0);
        let nowMs = T0;
        for (const { stepMs, amount } of plan) {
          const before = window.used(nowMs);
          nowMs += stepMs;
          if (stepMs < 0) expect(window.used(nowMs)).toBeGreaterThanOrEqual(before);
          window.book(amount, nowMs);
          const opensInMs = window.opensInMs(1, nowMs);
          expect(opensInMs).toBeLessThanOrEqual(LENGTH_MS);
          if (opensInMs > 0) {
            const later = make(nowMs);
            for (const [atMs, used] of window.uses(nowMs)) later.book(used, Math.max(atMs, nowMs));
            expect(later.used(nowMs + 2 * LENGTH_MS)).toBe(0);
          }
        }
      }),
    );
  });

  it('never counts below zero', () => {
    fc.assert(
      fc.property(steps, (plan) => {
        const window = make(T0);
        run(window, plan, (nowMs) => expect(window.used(nowMs)).toBeGreaterThanOrEqual(0));
      }),
    );
  });

  it('is the same again after its uses were written down', () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 0, max: 100_000 }), (plan, laterMs) => {
        const window = make(T0);
        let lastMs = T0;
        run(window, plan, (nowMs) => (lastMs = nowMs));
        const again =
          window instanceof SlidingWindow
            ? new SlidingWindow(LENGTH_MS, window.uses(lastMs), lastMs + laterMs)
            : new CalendarWindow(minutes, window.uses(lastMs), lastMs + laterMs);
        expect(again.used(lastMs + laterMs)).toBe(window.used(lastMs + laterMs));
      }),
    );
  });

  it('takes what was used by a clock that ran ahead as used now', () => {
    for (const window of [
      new SlidingWindow(LENGTH_MS, [[T0 + 1e9, 4]], T0),
      new CalendarWindow(minutes, [[T0 + 1e9, 4]], T0),
    ]) {
      expect([window.used(T0), window.opensInMs(4, T0), window.used(T0 + LENGTH_MS)]).toEqual([
        4,
        LENGTH_MS,
        0,
      ]);
    }
  });
});
