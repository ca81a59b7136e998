import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Backoff } from './backoff.js';

const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

/** Fails with an attempt that began at this very moment, after the rest before it. */
function failInTurn(backoff: Backoff, times: number): number[] {
  const rests: number[] = [];
  let now = 0;
  for (let i = 0; i < times; i++) {
    const rest = backoff.failed(now, now);
    rests.push(rest);
    now += rest;
  }
  return rests;
}

describe('Backoff', () => {
  it('doubles from one second up to the cap', () => {
    expect(failInTurn(new Backoff({ capMs: 10_000 }), 6)).toEqual([1000, 2000, 4000, 8000, 10_000, 10_000]);
  });

  it('never rests longer than a cap below the first step', () => {
    expect(failInTurn(new Backoff({ capMs: 300 }), 3)).toEqual([300, 300, 300]);
  });

  it('stays at the cap for a streak of any length, also one of years', () => {
    const rests = failInTurn(new Backoff({ capMs: 10 * YEAR_MS }), 1200);
    expect(rests.at(-1)).toBe(10 * YEAR_MS);
    expect(rests.every((rest) => Number.isFinite(rest) && rest > 0)).toBe(true);
  });

  it('doubles from another first rest where one is given', () => {
    expect(failInTurn(new Backoff({ capMs: 30_000, baseMs: 5000 }), 4)).toEqual([
      5000, 10_000, 20_000, 30_000,
    ]);
    expect(failInTurn(new Backoff({ capMs: 2000, baseMs: 5000 }), 2)).toEqual([2000, 2000]);
  });

  it('knows its two halves, also of a rest that was prolonged', () => {
    const backoff = new Backoff({ capMs: HOUR_MS });
    expect(backoff.firstHalfMs(50)).toBe(0);
    backoff.failed(100, 100);
    expect([backoff.firstHalfMs(100), backoff.firstHalfMs(600), backoff.firstHalfMs(900)]).toEqual([
      500, 0, 0,
    ]);
    backoff.failed(200, 50, 9900);
    expect(backoff.firstHalfMs(200)).toBe(4900);
    backoff.succeeded();
    expect(backoff.firstHalfMs(200)).toBe(0);
  });

  it('rests after a failed trial at least as long as before, never above the cap', () => {
    const backoff = new Backoff({ capMs: 60_000 });
    backoff.failed(0, 0, 30_000);
    expect(backoff.failed(30_500, 20_000, 0, true)).toBe(30_000);
    expect(backoff.failed(60_000, 50_000, 45_000, true)).toBe(45_000);
    // Prolonged beyond the cap by an old request's Retry-After.
    backoff.failed(100_000, 10, 60_000);
    expect(backoff.failed(150_000, 140_000, 0, true)).toBe(60_000);
    expect(backoff.streak).toBe(4);
    // One that is no trial climbs the ladder only.
    expect(backoff.failed(220_000, 215_000)).toBe(16_000);
  });

  it('takes the failed trial of an earlier rest as part of the present one', () => {
    const backoff = new Backoff({ capMs: 60_000 });
    backoff.failed(0, 0);
    backoff.failed(800, 700, 0, true);
    expect(backoff.failed(900, 710, 0, true)).toBe(1900);
    expect(backoff.streak).toBe(2);
  });

  it('begins a new streak with a failed trial after another trial succeeded', () => {
    const backoff = new Backoff({ capMs: 60_000 });
    backoff.failed(0, 0, 30_000);
    backoff.succeeded();
    expect(backoff.failed(21_000, 20_000, 0, true)).toBe(1000);
    expect(backoff.streak).toBe(1);
  });

  it('gives a place of a trial only where one is free, and takes back only what it gave', () => {
    const backoff = new Backoff({ capMs: 60_000 });
    expect([backoff.takeTrial(1), backoff.takeTrial(1), backoff.takeTrial(2)]).toEqual([true, false, true]);
    backoff.giveBackTrial();
    expect(backoff.trials).toBe(1);
    backoff.giveBackTrial();
    expect(() => backoff.giveBackTrial()).toThrow('nobody held');
  });

  it('is not resting before a failure, and takes traffic again when the rest ends by time', () => {
    const backoff = new Backoff({ capMs: HOUR_MS });
    expect(backoff.restingMs(0)).toBe(0);
    backoff.failed(100, 0);
    expect(backoff.restingMs(100)).toBe(1000);
    expect(backoff.restingMs(1099.5)).toBeCloseTo(0.5);
    expect(backoff.restingMs(1100)).toBe(0);
    expect(backoff.streak).toBe(1);
  });

  it('does not raise the streak for attempts that began before the present rest', () => {
    const backoff = new Backoff({ capMs: HOUR_MS });
    for (let i = 0; i < 20; i++) backoff.failed(1000 + i, i);
    expect(backoff.streak).toBe(1);
    expect(backoff.restingMs(1019)).toBe(981);
  });

  it('raises the streak for an attempt that began after the rest', () => {
    const backoff = new Backoff({ capMs: HOUR_MS });
    backoff.failed(0, 0);
    expect(backoff.failed(1500, 1200)).toBe(2000);
    expect(backoff.streak).toBe(2);
  });

  it('counts a failure that began before a reset as the first of a new streak', () => {
    const backoff = new Backoff({ capMs: HOUR_MS });
    failInTurn(backoff, 4);
    backoff.succeeded();
    expect(backoff.failed(20_000, 10)).toBe(1000);
    expect(backoff.streak).toBe(1);
  });

  it('forgets everything at a success, also one that began before the rest', () => {
    const backoff = new Backoff({ capMs: HOUR_MS });
    backoff.failed(0, 0, 60_000);
    backoff.succeeded();
    expect([backoff.streak, backoff.restingMs(1), backoff.probeAllowed(1)]).toEqual([0, 0, true]);
  });

  it('rests as long as Retry-After asks where that is longer, never above the cap', () => {
    expect(new Backoff({ capMs: 60_000 }).failed(0, 0, 5000)).toBe(5000);
    expect(new Backoff({ capMs: 60_000 }).failed(0, 0, 200)).toBe(1000);
    expect(new Backoff({ capMs: 60_000 }).failed(0, 0, 90_000)).toBe(60_000);
  });

  it('lengthens a rest by a later Retry-After of the same event without raising the streak', () => {
    const backoff = new Backoff({ capMs: 60_000 });
    backoff.failed(100, 0);
    expect(backoff.failed(200, 50, 9000)).toBe(9000);
    expect(backoff.streak).toBe(1);
    expect(backoff.failed(300, 60, 10)).toBe(8900);
  });

  it('sends no probe before the time that Retry-After named, and at once where it named none', () => {
    const backoff = new Backoff({ capMs: 60_000 });
    backoff.failed(0, 0);
    expect(backoff.probeAllowed(0)).toBe(true);
    backoff.failed(2000, 2000, 10_000);
    expect(backoff.probeAllowed(11_999)).toBe(false);
    expect(backoff.probeAllowed(12_000)).toBe(true);
  });

  it('keeps the quiet that Retry-After named beyond the cap, in a later rest too', () => {
    const backoff = new Backoff({ capMs: 1000 });
    backoff.failed(0, 0, 60_000);
    // The rest has ended by its cap, a request failed again without a word: a new rest, still within the quiet.
    backoff.failed(1500, 1400);
    expect(backoff.restingMs(1600)).toBeGreaterThan(0);
    expect(backoff.probeAllowed(1600)).toBe(false);
  });

  it('tells of every rest that begins or is prolonged', () => {
    const backoff = new Backoff({ capMs: 60_000 });
    let told = 0;
    backoff.onRest(() => told++);
    backoff.failed(0, 0);
    backoff.succeeded();
    backoff.failed(10, 5);
    expect(told).toBe(2);
  });

  it('never rests above the cap, never below zero, never climbs by more than one at a time', () => {
    const event = fc.record({
      after: fc.integer({ min: 0, max: 5000 }),
      age: fc.integer({ min: 0, max: 20_000 }),
      outcome: fc.constantFrom('ok', 'fail', 'fail', 'retry'),
      retryMs: fc.oneof(fc.integer({ min: 0, max: 100_000 }), fc.constant(YEAR_MS * 1000)),
    });
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 60 }),
        fc.integer({ min: 1, max: 60_000 }),
        (events, capMs) => {
          const backoff = new Backoff({ capMs });
          let now = 20_000;
          for (const { after, age, outcome, retryMs } of events) {
            now += after;
            const before = backoff.streak;
            if (outcome === 'ok') backoff.succeeded();
            else backoff.failed(now, now - age, outcome === 'retry' ? retryMs : undefined);
            expect(backoff.streak).toBeLessThanOrEqual(before + 1);
            expect(backoff.restingMs(now)).toBeLessThanOrEqual(capMs);
            expect(backoff.restingMs(now)).toBeGreaterThanOrEqual(0);
            if (outcome === 'ok') expect(backoff.restingMs(now)).toBe(0);
            else expect(backoff.restingMs(now)).toBeGreaterThan(0);
          }
        },
      ),
    );
  });
});
