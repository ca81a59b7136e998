import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Plan, SpillSimulation } from '../../../test/support/spill-simulation.js';

const PAID = 2;
const MORE_PAID = 3;
const priority = fc.constantFrom(-5, 0, 0, 0, 5);

const comes = fc.record({
  kind: fc.constant('comes' as const),
  gapMs: fc.nat(40),
  model: fc.constantFrom(0, 0, 0, 1, 2),
  priority,
  attempts: fc.array(fc.record({ holdMs: fc.integer({ min: 1, max: 120 }), fails: fc.boolean() }), {
    minLength: 1,
    maxLength: 4,
  }),
});
const rests = fc.record({
  kind: fc.constant('rests' as const),
  gapMs: fc.nat(40),
  upstream: fc.nat(MORE_PAID),
  ms: fc.integer({ min: 1, max: 300 }),
});
const leaves = fc.record({ kind: fc.constant('leaves' as const), gapMs: fc.nat(40), which: fc.nat(50) });

const spill = fc.record({ afterMs: fc.nat(150), minPriority: fc.constantFrom(-Infinity, -Infinity, 0, 5) });
const limit = fc.integer({ min: 1, max: 3 });

/** One or two upstreams of one's own, one or two paid ones behind them; a second model has no paid one, a third the first by a rule of its own. */
const plan: fc.Arbitrary<Plan> = fc
  .record({
    limits: fc.tuple(limit, limit, limit, limit),
    owned: fc.constantFrom([0], [0, 1], [1, 0]),
    paid: spill,
    /** Waits longer than the first. */
    more: fc.option(spill),
    other: spill,
    size: fc.oneof(fc.constant(1000), fc.integer({ min: 1, max: 6 })),
    waitMs: fc.integer({ min: 50, max: 1000 }),
    /** Of the gaps: from a crowd to hardly anybody. */
    load: fc.constantFrom(0.1, 0.5, 1, 3),
    events: fc.array(
      fc.oneof(
        { weight: 12, arbitrary: comes },
        { weight: 1, arbitrary: rests },
        { weight: 1, arbitrary: leaves },
      ),
      { minLength: 10, maxLength: 80, size: 'max' },
    ),
  })
  .map(({ events, limits, load, more, other, owned, paid, size, waitMs }) => {
    const own = owned.map((upstream) => ({ upstream, spill: null }));
    const bought = { upstream: PAID, spill: paid };
    const last = more === null ? null : { ...more, afterMs: paid.afterMs + more.afterMs };
    const all = [...own, bought, ...(last === null ? [] : [{ upstream: MORE_PAID, spill: last }])];
    const scaled = events.map((event) => ({ ...event, gapMs: Math.round(event.gapMs * load) }));
    const models = [all, own, [own[0]!, { upstream: PAID, spill: other }]].map((entries) => ({
      entries,
      size,
      waitMs,
    }));
    return { limits, models, events: scaled };
  });

/** Runs it, and holds it against the model at every moment. */
async function simulated(planned: Plan): Promise<SpillSimulation> {
  const simulation = new SpillSimulation(planned);
  await simulation.run(() => {
    expect(simulation.real.toSorted()).toEqual(simulation.expected.toSorted());
    expect(simulation.overdue).toEqual([]);
  });
  return simulation;
}

describe('who goes to a paid entry', () => {
  it('goes there, for the reason and in the moment that a plain model of costs says, and nobody else does', async () => {
    const reasons: Record<string, number> = {};
    await fc.assert(
      fc.asyncProperty(plan, async (planned) => {
        const { model } = await simulated(planned);
        for (const { afterMs, estimateMs, reason, waitedMs } of model.claims) {
          reasons[reason ?? 'none'] = (reasons[reason ?? 'none'] ?? 0) + 1;
          // What was bought early would have come later than that of its own.
          if (reason === 'estimate') expect(estimateMs).toBeGreaterThan(afterMs);
          if (reason === 'waited') expect(waitedMs).toBeGreaterThanOrEqual(afterMs);
        }
        // Nobody is lost, nothing goes on for ever.
        expect(model.waiting).toEqual([]);
        expect(model.upstreams.flatMap(({ held }) => held)).toEqual([]);
      }),
      { numRuns: 300 },
    );
    // All of it has happened, and often.
    for (const reason of ['none', 'waited', 'estimate', 'unavailable', 'full'])
      expect.soft([reason, reasons[reason]]).toEqual([reason, expect.any(Number)]);
  }, 120_000);

  it('is nobody while one comes after the other is done', async () => {
    const lone = fc.record({
      holdMs: fc.integer({ min: 1, max: 500 }),
      pauseMs: fc.integer({ min: 1, max: 100 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(lone, { minLength: 1, maxLength: 50 }),
        fc.nat(150),
        async (ones, afterMs) => {
          const simulation = await simulated({
            limits: [1, 1, 1],
            models: [{ entries: behind(afterMs), size: 1000, waitMs: 1000 }],
            events: ones.map(({ holdMs }, i) => ({
              kind: 'comes',
              gapMs: i === 0 ? 0 : ones[i - 1]!.holdMs + ones[i - 1]!.pauseMs,
              model: 0,
              priority: 0,
              attempts: [{ holdMs, fails: false }],
            })),
          });
          expect(simulation.scene.spills).toEqual([]);
          expect(simulation.model.claims).toHaveLength(ones.length);
        },
      ),
    );
  });

  it('is, where every exchange takes as long, exactly who would have waited longer, and goes there at once', async () => {
    let [bought, waited] = [0, 0];
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(60), { minLength: 1, maxLength: 60, size: 'max' }),
        fc.integer({ min: 2, max: 50 }),
        fc.integer({ min: 10, max: 150 }),
        async (gapsMs, holdMs, afterMs) => {
          const one = { kind: 'comes' as const, model: 0, priority: 0, attempts: [{ holdMs, fails: false }] };
          const { model } = await simulated({
            limits: [1, 1, 1000],
            models: [{ entries: behind(afterMs), size: 1000, waitMs: 10_000 }],
            // Of the first it is learnt how long one takes.
            events: [
              { ...one, gapMs: 0 },
              ...gapsMs.map((gapMs, i) => ({ ...one, gapMs: i === 0 ? 60 : gapMs })),
            ],
          });
          // As a till does it: whoever would have to stand longer than that goes elsewhere.
          let freeAt = 0;
          for (const { at, upstream, waitedMs } of model.claims.toSorted((a, b) => a.request - b.request)) {
            const cameAt = at - waitedMs;
            const wouldWaitMs = Math.max(0, freeAt - cameAt);
            const leaves = wouldWaitMs > afterMs;
            expect([upstream, waitedMs]).toEqual(leaves ? [`u${PAID}`, 0] : ['u0', wouldWaitMs]);
            if (leaves) bought++;
            else freeAt = Math.max(cameAt, freeAt) + holdMs;
            if (wouldWaitMs > 0 && !leaves) waited++;
          }
        },
      ),
      { numRuns: 200 },
    );
    expect([bought > 0, waited > 0]).toEqual([true, true]);
  });
});

const behind = (afterMs: number) => [
  { upstream: 0, spill: null },
  { upstream: PAID, spill: { afterMs, minPriority: -Infinity } },
];
