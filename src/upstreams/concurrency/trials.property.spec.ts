import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BackoffService } from '../backoff/backoff.service.js';
import { ProviderClient } from '../provider-client.js';
import { Upstream } from '../upstream.js';
import { load } from '../../../test/support/small-config.js';
import { claimsWith } from '../../../test/support/slot-rooms.js';
import type { Claim, Claimable } from './concurrency.service.js';

const CAP_MS = 20_000;

/** Two that share a counter, one with its own, one that comes back by probes only, one that never rests; two tiers. */
const FILE = `
providers:
  - { id: p, url: "http://127.0.0.1:9", backoff: PT20S, recovery: half_open }
upstreams:
  - { id: a, provider: p, model: m, max_concurrency: 1 }
  - { id: b, provider: p, model: m, max_concurrency: 30 }
  - { id: c, provider: p, model: m, max_concurrency: 3, backoff: PT20S, recovery: both }
  - { id: d, provider: p, model: m, backoff: PT20S, recovery: probe }
  - { id: e, provider: p, model: m, max_concurrency: 2, backoff: PT0S }
models:
  - { name: m, upstreams: [a, b, c, d, e] }
`;
const TIERS = [1, 1, 1, 2, 2];
const COUNTERS = [0, 0, 1, 2, 3];
const LIMITS = [1, 30, 3, Infinity, 2];
const PLACES = [1, 2, 1, 0, 0];

interface CounterModel {
  streak: number;
  began: number;
  ends: number;
  quietUntil: number;
  trials: number;
}

interface Held {
  readonly index: number;
  readonly trial: boolean;
  readonly at: number;
}

/** What must hold, in the simplest words. */
class Model {
  now = 1000;
  held: Held[] = [];
  readonly counters: CounterModel[] = [0, 1, 2, 3].map(() => ({
    streak: 0,
    began: 0,
    ends: 0,
    quietUntil: 0,
    trials: 0,
  }));

  counter(index: number): CounterModel {
    return this.counters[COUNTERS[index] as number] as CounterModel;
  }

  rests(index: number): boolean {
    const { streak, ends } = this.counter(index);
    return streak > 0 && this.now < ends;
  }

  /** Where the next request belongs: by tier, then healthy before resting, then by the order of the file. */
  next(): { index: number; trial: boolean } | null {
    const choices = TIERS.flatMap((tier, index) => {
      const { began, ends, quietUntil, trials } = this.counter(index);
      if (this.held.filter((held) => held.index === index).length >= (LIMITS[index] as number)) return [];
      if (!this.rests(index)) return [{ index, trial: false, rank: tier * 2 }];
      const open = this.now >= (began + ends) / 2 && this.now >= quietUntil;
      return open && trials < (PLACES[index] as number) ? [{ index, trial: true, rank: tier * 2 + 1 }] : [];
    });
    return choices.toSorted((a, b) => a.rank - b.rank || a.index - b.index)[0] ?? null;
  }

  fail({ index, trial, at }: Held, retryAfterMs: number): void {
    const counter = this.counter(index);
    const capMs = index === 4 ? 0 : CAP_MS;
    const asked = Math.min(capMs, retryAfterMs);
    if (this.rests(index) && at < counter.began) {
      counter.ends = Math.max(counter.ends, this.now + asked);
    } else {
      const window = trial && counter.streak > 0 ? counter.ends - counter.began : 0;
      counter.streak++;
      counter.began = this.now;
      counter.ends = this.now + Math.min(capMs, Math.max(1000 * 2 ** (counter.streak - 1), asked, window));
    }
    if (retryAfterMs > 0) counter.quietUntil = Math.max(counter.quietUntil, this.now + retryAfterMs);
  }
}

class Real {
  readonly clock = { time: 1000, now: () => this.clock.time };
  readonly service = claimsWith(this.clock);
  readonly candidates: (Claimable & { index: number })[];
  held: Claim<Claimable & { index: number }>[] = [];

  constructor() {
    const counters = new BackoffService();
    this.candidates = load(FILE).config.upstreams.map((config, index) => ({
      index,
      upstream: new Upstream(config, new ProviderClient(config.provider), counters.counterFor(config)),
      gates: null,
      entry: { tier: TIERS[index] as number, spill: null },
    }));
  }
}

function compare(model: Model, real: Real): void {
  for (const { index, upstream } of real.candidates) {
    const counter = model.counter(index);
    expect(upstream.backoff?.streak).toBe(counter.streak);
    expect(upstream.restingMs(model.now)).toBe(model.rests(index) ? counter.ends - model.now : 0);
    expect(upstream.backoff?.trials).toBe(counter.trials);
    expect(counter.trials).toBeLessThanOrEqual(2);
    expect(upstream.slots.active).toBe(model.held.filter((held) => held.index === index).length);
  }
}

class Wait implements fc.Command<Model, Real> {
  constructor(readonly ms: number) {}
  check = () => true;
  run(model: Model, real: Real): void {
    model.now += this.ms;
    real.clock.time += this.ms;
    compare(model, real);
  }
  toString = () => `wait ${this.ms}`;
}

class Ask implements fc.Command<Model, Real> {
  check = () => true;
  run(model: Model, real: Real): void {
    const expected = model.next();
    const claim = real.service.claim(real.candidates, null);
    expect(claim && { index: claim.candidate.index, trial: claim.lease.trial }).toEqual(
      expected && { index: expected.index, trial: expected.trial },
    );
    if (claim !== null && expected !== null) {
      real.held.push(claim);
      model.held.push({ ...expected, at: model.now });
      if (expected.trial) model.counter(expected.index).trials++;
    }
    compare(model, real);
  }
  toString = () => 'ask';
}

type Outcome = 'ok' | '4xx' | 'cancelled' | 'failed';

class End implements fc.Command<Model, Real> {
  constructor(
    readonly which: number,
    readonly outcome: Outcome,
    readonly retryAfterMs: number,
  ) {}
  check = (model: Readonly<Model>) => model.held.length > 0;
  run(model: Model, real: Real): void {
    const at = this.which % model.held.length;
    const held = model.held.splice(at, 1)[0] as Held;
    const { candidate, lease } = real.held.splice(at, 1)[0] as Claim<Claimable>;
    const { backoff } = candidate.upstream;
    if (this.outcome === 'ok') {
      backoff?.succeeded();
      Object.assign(model.counter(held.index), { streak: 0, began: 0, ends: 0, quietUntil: 0 });
    } else if (this.outcome === 'failed') {
      backoff?.failed(real.clock.now(), lease.startedAt, this.retryAfterMs, lease.trial);
      model.fail(held, this.retryAfterMs);
    }
    lease.release();
    lease.release();
    if (held.trial) model.counter(held.index).trials--;
    compare(model, real);
  }
  toString = () => `end ${this.which} ${this.outcome} ${this.retryAfterMs}`;
}

describe('trials', () => {
  it('come only in the second half, behind all that is healthy in their tier, never more than their places; each place comes back', () => {
    let trials = 0;
    const commands = fc.commands(
      [
        fc.integer({ min: 1, max: 3000 }).map((ms) => new Wait(ms)),
        fc.constant(new Ask()),
        fc.constant(new Ask()),
        fc
          .tuple(
            fc.nat(40),
            fc.constantFrom<Outcome>('failed', 'failed', 'failed', 'ok', '4xx', 'cancelled'),
            fc.constantFrom(0, 0, 0, 700, 5000, 60_000),
          )
          .map((all) => new End(...all)),
      ],
      { maxCommands: 150, size: 'max' },
    );
    fc.assert(
      fc.property(commands, (steps) => {
        const model = new Model();
        const real = new Real();
        fc.modelRun(() => ({ model, real }), steps);
        trials += real.held.filter(({ lease }) => lease.trial).length;
        for (const { lease } of real.held) lease.release();
        for (const { upstream } of real.candidates)
          expect([upstream.backoff?.trials, upstream.slots.active]).toEqual([0, 0]);
      }),
      { numRuns: 200 },
    );
    // The property would hold as well if nothing were ever tried.
    expect(trials).toBeGreaterThan(0);
  });
});
