import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseDuration } from '../../common/time/duration.js';
import { calendarOf } from './calendar.js';

const spanOf = (text: string, at: string): [string, string] => {
  const { startMs, endMs } = calendarOf({ text, ms: parseDuration(text) ?? 0 })(Date.parse(at));
  return [new Date(startMs).toISOString(), new Date(endMs).toISOString()];
};
const midnight = (day: string): string => `${day}T00:00:00.000Z`;

describe('calendarOf', () => {
  it.each([
    ['P1D', '2026-03-29T23:59:59.999Z', '2026-03-29', '2026-03-30'],
    ['P1D', '2026-03-30T00:00:00.000Z', '2026-03-30', '2026-03-31'],
    ['PT24H', '2026-03-30T12:00:00Z', '2026-03-30', '2026-03-31'],
    // 2026-11-30 is a Monday.
    ['P7D', '2026-11-29T23:59:59.999Z', '2026-11-23', '2026-11-30'],
    ['P7D', '2026-11-30T00:00:00Z', '2026-11-30', '2026-12-07'],
    ['P1W', '2026-12-06T12:00:00Z', '2026-11-30', '2026-12-07'],
    ['P1W', '2027-01-01T12:00:00Z', '2026-12-28', '2027-01-04'],
    ['P1M', '2027-01-31T23:59:59.999Z', '2027-01-01', '2027-02-01'],
    ['P1M', '2027-02-28T12:00:00Z', '2027-02-01', '2027-03-01'],
    ['P1M', '2028-02-29T23:59:59Z', '2028-02-01', '2028-03-01'],
    ['P1M', '2028-12-31T23:59:59Z', '2028-12-01', '2029-01-01'],
    ['P01M', '2028-02-29T23:59:59Z', '2028-02-01', '2028-03-01'],
    ['P2D', '1970-01-02T00:00:00Z', '1970-01-01', '1970-01-03'],
    ['P30D', '1970-02-01T00:00:00Z', '1970-01-31', '1970-03-02'],
    ['P2W', '1970-01-16T00:00:00Z', '1970-01-15', '1970-01-29'],
  ])('%s at %s lies in %s … %s', (text, at, start, end) => {
    expect(spanOf(text, at)).toEqual([midnight(start), midnight(end)]);
  });

  it('turns with the hour and the minute of UTC', () => {
    expect(spanOf('PT1H', '2026-03-29T01:59:59Z')).toEqual([
      '2026-03-29T01:00:00.000Z',
      '2026-03-29T02:00:00.000Z',
    ]);
    expect(spanOf('PT1M', '2026-03-29T01:59:59Z')).toEqual([
      '2026-03-29T01:59:00.000Z',
      '2026-03-29T02:00:00.000Z',
    ]);
  });

  it('puts every moment into exactly one window', () => {
    const texts = ['PT1S', 'PT7S', 'PT1H', 'P1D', 'P3D', 'P1W', 'P30D', 'P1M', 'P1Y'];
    const moment = fc.integer({ min: Date.UTC(1999, 0), max: Date.UTC(2101, 0) });
    fc.assert(
      fc.property(fc.constantFrom(...texts), moment, (text, atMs) => {
        const calendar = calendarOf({ text, ms: parseDuration(text) ?? 0 });
        const { startMs, endMs } = calendar(atMs);
        expect(startMs <= atMs && atMs < endMs).toBe(true);
        expect([calendar(startMs), calendar(endMs - 1)]).toEqual([
          { startMs, endMs },
          { startMs, endMs },
        ]);
        expect(calendar(endMs).startMs).toBe(endMs);
        expect(calendar(startMs - 1).endMs).toBe(startMs);
      }),
    );
  });
});
