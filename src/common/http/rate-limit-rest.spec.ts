import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseReset, rateLimitRestMs } from './rate-limit-rest.js';

const NOW = Date.UTC(2026, 5, 1, 12, 0, 0);
const rest = (headers: Readonly<Record<string, string>>) =>
  rateLimitRestMs(Object.keys(headers), (name) => headers[name], NOW);

describe('parseReset', () => {
  it.each([
    ['1m12s', 72_000],
    ['6ms', 6],
    ['7.66s', 7660],
    ['6m0s', 360_000],
    ['2h45m30s', 9_930_000],
    ['1h', 3_600_000],
    ['500us', 0.5],
    ['500µs', 0.5],
    ['1s250ms', 1250],
    ['0s', 0],
    ['30', 30_000],
    ['0.5', 500],
    ['0', 0],
    [' 30 ', 30_000],
    [String(NOW / 1000 + 9), 9000],
    [String(NOW + 9000), 9000],
    ['2026-06-01T12:00:09Z', 9000],
    ['2026-06-01T12:00:09.500Z', 9500],
    ['2026-06-01T14:00:09+02:00', 9000],
    ['Mon, 01 Jun 2026 12:00:09 GMT', 9000],
    ['Mon Jun  1 12:00:09 2026', 9000],
  ])('%j is %d ms', (text, ms) => {
    expect(parseReset(text, NOW)).toBe(ms);
  });

  it.each([
    undefined,
    '',
    ' ',
    '-1',
    '-5s',
    '+5',
    'soon',
    '1m-2s',
    '5d',
    's',
    '1e3',
    'NaN',
    'Infinity',
    '1,5',
    '2026-06-01',
    '2026-06-01T11:59:59Z',
    '2026-99-01T12:00:00Z',
    String(NOW / 1000 - 1),
    String(NOW - 1),
    '9'.repeat(100),
    '1s'.repeat(100),
  ])('%j counts as absent', (text) => {
    expect(parseReset(text, NOW)).toBeUndefined();
  });

  it('is a number ≥ 0 or undefined for any text', () => {
    const text = fc.oneof(fc.string(), fc.stringMatching(/^[\d.hmsunµ:TZ+-]{0,40}$/));
    fc.assert(
      fc.property(text, (value) => {
        const ms = parseReset(value, NOW);
        expect(ms === undefined || (Number.isFinite(ms) && ms >= 0)).toBe(true);
      }),
    );
  });

  it('reads what Go writes', () => {
    const part = fc.nat({ max: 59 });
    fc.assert(
      fc.property(fc.nat({ max: 100 }), part, part, (h, m, s) => {
        expect(parseReset(`${h}h${m}m${s}s`, NOW)).toBe(((h * 60 + m) * 60 + s) * 1000);
      }),
    );
  });
});

describe('rateLimitRestMs', () => {
  it('goes by retry-after-ms, then Retry-After, then the resets', () => {
    const all = { 'retry-after-ms': '1500', 'retry-after': '7', 'x-ratelimit-reset-requests': '1m' };
    expect(rest(all)).toBe(1500);
    expect(rest({ ...all, 'retry-after-ms': '-1' })).toBe(7000);
    expect(rest({ ...all, 'retry-after-ms': 'x', 'retry-after': 'x' })).toBe(60_000);
    expect(rest({ 'retry-after': 'Mon, 01 Jun 2026 12:00:07 GMT' })).toBe(7000);
    expect(rest({ 'retry-after': 'Mon, 01 Jun 2026 11:00:00 GMT' })).toBeUndefined();
    expect(rest({})).toBeUndefined();
    expect(rest({ 'content-type': 'application/json' })).toBeUndefined();
  });

  it('takes the reset of the counter that is used up', () => {
    const openai = {
      'x-ratelimit-remaining-requests': '0',
      'x-ratelimit-reset-requests': '8.64s',
      'x-ratelimit-remaining-tokens': '1200',
      'x-ratelimit-reset-tokens': '6m0s',
    };
    expect(rest(openai)).toBe(8640);
    const anthropic = {
      'anthropic-ratelimit-requests-remaining': '40',
      'anthropic-ratelimit-requests-reset': '2026-06-01T13:00:00Z',
      'anthropic-ratelimit-input-tokens-remaining': '0',
      'anthropic-ratelimit-input-tokens-reset': '2026-06-01T12:00:20Z',
    };
    expect(rest(anthropic)).toBe(20_000);
  });

  it('takes the longest where all or none are used up', () => {
    const resets = { 'x-ratelimit-reset-requests': '8s', 'x-ratelimit-reset-tokens': '9s' };
    expect(rest(resets)).toBe(9000);
    const all = { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-remaining-tokens': '0' };
    expect(rest({ ...resets, ...all })).toBe(9000);
    const none = { 'x-ratelimit-remaining-requests': '3', 'x-ratelimit-remaining-tokens': '4' };
    expect(rest({ ...resets, ...none })).toBe(9000);
  });

  it('leaves out what it cannot read', () => {
    expect(
      rest({
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': 'later',
        'x-ratelimit-reset-tokens': '9s',
      }),
    ).toBe(9000);
  });

  it('knows the form without a name of the counter', () => {
    expect(rest({ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW + 4000) })).toBe(4000);
  });
});
