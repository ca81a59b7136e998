import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { retryAfterMs } from './retry-after.js';

const NOW = Date.UTC(1994, 10, 6, 8, 49, 0);
const zone = process.env['TZ'];

afterEach(() => {
  if (zone === undefined) delete process.env['TZ'];
  else process.env['TZ'] = zone;
});

function asked(headers: Record<string, string>): number | undefined {
  return retryAfterMs(
    (name) => headers[name],
    () => NOW,
  );
}

describe('retryAfterMs', () => {
  it.each([
    [{ 'retry-after': '0' }, 0],
    [{ 'retry-after': '120' }, 120_000],
    [{ 'retry-after': ' 1.5 ' }, 1500],
    [{ 'retry-after-ms': '250' }, 250],
    [{ 'retry-after-ms': '250', 'retry-after': '9' }, 250],
    [{ 'retry-after-ms': '90000', 'retry-after': '9' }, 90_000],
    [{ 'retry-after-ms': '0', 'retry-after': '9' }, 0],
    [{ 'retry-after-ms': '250', 'retry-after': 'Sun, 06 Nov 1994 08:49:37 GMT' }, 250],
    [{ 'retry-after-ms': '250', 'retry-after': 'never' }, 250],
    [{ 'retry-after-ms': 'soon', 'retry-after': '9' }, 9000],
    [{ 'retry-after-ms': '', 'retry-after': 'Sun, 06 Nov 1994 08:49:37 GMT' }, 37_000],
    [{ 'retry-after-ms': '1, 2', 'retry-after': '9' }, 9000],
    [{ 'retry-after': 'Sun, 06 Nov 1994 08:49:37 GMT' }, 37_000],
    [{ 'retry-after': 'Sunday, 06-Nov-94 08:49:37 GMT' }, 37_000],
    [{ 'retry-after': 'Sun, 06 Nov 1994 08:48:00 GMT' }, 0],
  ])('reads %j', (headers, ms) => {
    expect(asked(headers)).toBe(ms);
  });

  it('reads the oldest form of a date in GMT wherever the service runs (RFC 9110 §5.6.7)', () => {
    process.env['TZ'] = 'America/New_York';
    expect(asked({ 'retry-after': 'Sun Nov  6 08:49:37 1994' })).toBe(37_000);
  });

  it.each(['', ' ', '-1', '1e9', '0x10', 'Infinity', 'NaN', 'never', '1,2', '9'.repeat(30)])(
    'does not read %j',
    (value) => {
      expect(asked({ 'retry-after': value })).toBeUndefined();
      expect(asked({ 'retry-after-ms': value })).toBeUndefined();
    },
  );

  it('says nothing where nothing was said', () => {
    expect(asked({})).toBeUndefined();
  });

  it('gives a finite time ≥ 0 or nothing for any text', () => {
    fc.assert(
      fc.property(fc.string(), (value) => {
        const ms = asked({ 'retry-after': value });
        expect(ms === undefined || (Number.isFinite(ms) && ms >= 0)).toBe(true);
      }),
    );
  });
});
