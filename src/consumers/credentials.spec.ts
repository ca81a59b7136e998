import { describe, expect, it } from 'vitest';
import type { IncomingHttpHeaders } from 'node:http';
import { bearerToken, presentedKey, REFUSED } from './credentials.js';

/** As Node's parser gives them: of a repeated Authorization the first, others joined. */
function request(...raw: [string, string][]): [IncomingHttpHeaders, string[]] {
  const headers: Record<string, string> = {};
  for (const [name, value] of raw) {
    const key = name.toLowerCase();
    if (headers[key] === undefined) headers[key] = value;
    else if (key !== 'authorization') headers[key] += `, ${value}`;
  }
  return [headers, raw.flat()];
}
const key = (...raw: [string, string][]) => presentedKey(...request(...raw));

describe('presentedKey', () => {
  it.each([
    ['authorization', 'Bearer k'],
    ['Authorization', 'bearer k'],
    ['AUTHORIZATION', 'BEARER   k '],
    ['x-api-key', 'k'],
    ['X-Api-Key', ' k '],
    ['api-key', 'k'],
    ['x-goog-api-key', 'k'],
  ])('%s: %s', (name, value) => expect(key([name, value])).toBe('k'));

  it('takes off the blanks of HTTP and nothing else', () => {
    expect(key(['x-api-key', '\t k \t'])).toBe('k');
    expect(key(['authorization', 'Bearer \xa0k'])).toBe('\xa0k');
    expect(key(['x-api-key', ' \t '])).toBeNull();
  });

  it('takes the first that is not empty', () => {
    expect(
      key(['x-goog-api-key', '4'], ['api-key', '3'], ['x-api-key', '2'], ['authorization', 'Bearer 1']),
    ).toBe('1');
    expect(key(['x-goog-api-key', '4'], ['api-key', '3'], ['x-api-key', ''])).toBe('3');
    expect(key(['authorization', 'Bearer '], ['x-api-key', '2'])).toBe('2');
    expect(key(['authorization', 'Bearer'], ['api-key', '3'])).toBe('3');
  });

  it('takes another scheme for no header', () => {
    expect(key(['authorization', 'Basic dTpw'], ['x-api-key', '2'])).toBe('2');
    expect(key(['authorization', 'Basic dTpw'])).toBeNull();
    expect(key(['authorization', 'Bearerx k'])).toBeNull();
    expect(key(['authorization', 'k'])).toBeNull();
  });

  it('refuses what is repeated or a list', () => {
    expect(key(['authorization', 'Bearer a'], ['Authorization', 'Bearer b'])).toBe(REFUSED);
    expect(key(['authorization', 'Bearer a'], ['authorization', 'Bearer a'])).toBe(REFUSED);
    expect(key(['authorization', 'Basic a'], ['authorization', 'Bearer b'])).toBe(REFUSED);
    expect(key(['authorization', 'Bearer a, Bearer b'])).toBe(REFUSED);
    expect(key(['x-api-key', 'a'], ['x-api-key', 'b'])).toBe(REFUSED);
    expect(key(['x-api-key', 'a,b'], ['api-key', 'c'])).toBe(REFUSED);
  });

  it('is null without any, whatever else is there', () => {
    expect(key()).toBeNull();
    expect(key(['cookie', 'api-key=k'], ['x-api-keys', 'k'], ['proxy-authorization', 'Bearer k'])).toBeNull();
  });
});

describe('bearerToken', () => {
  it('looks at nothing but Authorization', () => {
    expect(bearerToken(...request(['x-api-key', 'k']))).toBeNull();
    expect(bearerToken(...request(['authorization', 'Bearer k']))).toBe('k');
  });

  it('takes a key that is called like our own words as a key', () => {
    expect(key(['authorization', 'Bearer refused'])).toBe('refused');
  });
});
