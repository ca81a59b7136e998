import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { requestIdOf } from './request-id.js';

const UUID_4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('requestIdOf', () => {
  it('keeps what the client sent where it is sane', () => {
    fc.assert(fc.property(fc.stringMatching(/^[A-Za-z0-9._:-]{1,128}$/), (id) => requestIdOf(id) === id));
  });

  it.each([undefined, '', 'a b', 'ä', 'x'.repeat(129), ['a', 'b'], 'a\r\nb'])(
    'makes a UUID for %j',
    (header) => {
      expect(requestIdOf(header)).toMatch(UUID_4);
    },
  );

  it('makes another one each time, with all of its digits random', () => {
    const ids = Array.from({ length: 5000 }, () => requestIdOf(undefined));
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(UUID_4);
    const variety = Array.from({ length: 36 }, (_, i) => new Set(ids.map((id) => id[i])).size);
    // A dash, the version, the two free bits of the variant, and sixteen digits everywhere else.
    for (const [i, found] of variety.entries())
      expect(found).toBe([8, 13, 18, 23, 14].includes(i) ? 1 : i === 19 ? 4 : 16);
  });
});
