import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { weightedShuffle } from './weighted-shuffle.js';

/** A small generator with a seed, so that the shares below are the same in each run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

describe('weightedShuffle', () => {
  it('gives each item once, those of weight 0 last in their order', () => {
    const items = fc.array(
      fc.record({ weight: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e9, noNaN: true })) }),
    );
    fc.assert(
      fc.property(items, fc.nat(), (all, seed) => {
        const drawn = weightedShuffle(all, ({ weight }) => weight, seeded(seed));
        expect(new Set(drawn)).toEqual(new Set(all));
        expect(drawn).toHaveLength(all.length);
        const idle = all.filter(({ weight }) => weight === 0);
        expect(drawn.slice(all.length - idle.length)).toEqual(idle);
      }),
    );
  });

  it('draws in proportion to the weights, first and second', () => {
    const random = seeded(42);
    const counts = new Map<string, number>();
    const weights: Record<string, number> = { a: 3, b: 1, c: 1 };
    const rounds = 20_000;
    for (let i = 0; i < rounds; i++) {
      const order = weightedShuffle(['a', 'b', 'c'], (item) => weights[item] ?? 0, random).join('');
      counts.set(order, (counts.get(order) ?? 0) + 1);
    }
    // a first: 3/5; then b before c: 1/2. b first: 1/5; then a before c: 3/4.
    expect((counts.get('abc') ?? 0) / rounds).toBeCloseTo(0.3, 1);
    expect((counts.get('bac') ?? 0) / rounds).toBeCloseTo(0.15, 1);
    expect((counts.get('bca') ?? 0) / rounds).toBeCloseTo(0.05, 1);
  });

  it('gives the last item where the sums of floating point numbers leave nothing', () => {
    expect(
      weightedShuffle(
        [0.1, 0.2, 0.3],
        (item) => item,
        () => 1 - Number.EPSILON / 2,
      ),
    ).toHaveLength(3);
  });
});
