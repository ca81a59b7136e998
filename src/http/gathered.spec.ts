import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { gathered } from './gathered.js';

describe('gathered', () => {
  it('keeps every byte in its place, in few pieces, and copies no large one', () => {
    const sizes = fc.array(fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 90_000 })));
    fc.assert(
      fc.property(sizes, (lengths) => {
        const pieces = lengths.map((length, i) => Buffer.alloc(length, i % 256));
        const result = gathered(pieces);
        expect(Buffer.concat(result).equals(Buffer.concat(pieces))).toBe(true);
        const large = pieces.filter(({ length }) => length >= 16 * 1024);
        for (const piece of large) expect(result).toContain(piece);
        const small = Buffer.concat(pieces).length - Buffer.concat(large).length;
        expect(result.length).toBeLessThanOrEqual(2 * large.length + 1 + small / (64 * 1024));
      }),
      { numRuns: 100 },
    );
  });

  it('makes a handful of a million', () => {
    const pieces = Array.from({ length: 1_000_000 }, () => Buffer.from('x'));
    expect(gathered(pieces).length).toBeLessThan(20);
  });
});
