import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDuration, parseDuration } from './duration.js';

const DAY = 86_400_000;

describe('parseDuration', () => {
  it.each([
    ['PT30S', 30_000],
    ['PT1H15M', 4_500_000],
    ['P1D', DAY],
    ['PT500MS', 500],
    ['PT0.5S', 500],
    ['PT0,5S', 500],
    ['PT1.5S', 1500],
    ['PT1S500MS', 1500],
    ['PT1.1M', 66_000],
    ['P1Y2M10DT2H30M', (365 + 60 + 10) * DAY + 9_000_000],
    ['P2W', 14 * DAY],
    ['P1M', 30 * DAY],
    ['PT1M', 60_000],
    ['P1Y', 365 * DAY],
    ['PT0S', 0],
    ['P0D', 0],
    ['PT007S', 7000],
    ['PT0.0001S', 1],
  ])('%s is %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each([
    '',
    'P',
    'PT',
    'P1DT',
    '30',
    '30s',
    'PT30',
    'T30S',
    'pt30s',
    '-PT30S',
    'PT-30S',
    '+PT30S',
    'PT1S1H',
    'PT1S1S',
    'P1D1D',
    'PT1.5H30M',
    'PT.5S',
    'PT1.S',
    'PT1.2.3S',
    'P1H',
    'PT1D',
    'PT1W',
    ' PT1S',
    'PT1S ',
    'PT1S\n',
    'PT1 S',
    'soonish',
    `PT${'9'.repeat(40)}S`,
    `PT${'0'.repeat(100_000)}1S`,
  ])('refuses %j', (text) => {
    expect(parseDuration(text)).toBeNull();
  });

  it('gives a whole number ≥ 0 or null for any text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^P[\dYMWDTHS.,]{0,70}$/)), (text) => {
        const ms = parseDuration(text);
        expect(ms === null || (Number.isSafeInteger(ms) && ms >= 0)).toBe(true);
      }),
    );
  });
});

describe('formatDuration', () => {
  it.each([
    [0, 'PT0S'],
    [2000, 'PT2S'],
    [500, 'PT500MS'],
    [90_000, 'PT1M30S'],
    [3_600_000, 'PT1H'],
    [DAY, 'P1D'],
    [DAY + 43_200_000, 'P1DT12H'],
    [1500, 'PT1.5S'],
    [1001, 'PT1.001S'],
    [10_000, 'PT10S'],
    [30 * DAY, 'P30D'],
  ])('%d ms is %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  it('is read back exactly', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 400 * 365 * DAY }), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
    );
  });
});
