import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  claimOf,
  entry,
  type SceneUpstream,
  type SceneWait,
  SlotScene,
  told,
} from '../../../test/support/slot-scene.js';
import type { Lease } from '../lease.js';
import type { Claimable } from './claimable.js';
import type { Waiter } from './waiter.js';

const WAIT_MS = 500;

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('comes' as const),
      model: fc.nat(3),
      consumer: fc.constantFrom('a', 'b', 'c'),
      priority: fc.constantFrom(-3, 0, 0, 4),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('ends' as const), which: fc.nat(), failed: fc.boolean() }),
  },
  fc.record({ kind: fc.constant('leaves' as const), which: fc.nat() }),
  fc.record({ kind: fc.constant('time' as const), ms: fc.integer({ min: 1, max: 200 }) }),
  fc.record({ kind: fc.constant('rests' as const), which: fc.nat(4), ms: fc.integer({ min: 1, max: 400 }) }),
  fc.record({ kind: fc.constant('wakes' as const), which: fc.nat(4) }),
);

interface Running {
  readonly lease: Lease;
  readonly wait: SceneWait;
  readonly candidates: readonly Claimable[];
  readonly tried: Set<SceneUpstream>;
}

/** Five upstreams, three of them on one machine, behind four models, one of which does not wait. */
class World {
  readonly scene = new SlotScene();
  readonly upstreams: readonly SceneUpstream[];
  readonly models: readonly (readonly Claimable[])[];
  readonly queues;
  readonly running: Running[] = [];
  readonly waiting: { wait: SceneWait; candidates: readonly Claimable[]; tried: Set<SceneUpstream> }[] = [];
  readonly over: Waiter[] = [];
  came = 0;

  constructor() {
    const { scene } = this;
    const machine = scene.room({ limit: 2, settleMs: 10 });
    const [a, b, c] = [1, 2, 1].map((limit, i) => scene.upstream('abc'.charAt(i), limit, machine));
    const [d, e] = [scene.upstream('d', 1), scene.upstream('e', 2)];
    this.upstreams = [a, b, c, d, e] as SceneUpstream[];
    const lists = [[a, b], [b, c, d], [d, e], [c]];
    this.models = lists.map((list) => list.map((upstream) => entry(upstream as SceneUpstream)));
    this.queues = [
      scene.queue({ waitMs: WAIT_MS, ageingMs: 40 }, 'm0'),
      scene.queue({ waitMs: WAIT_MS, size: 3 }, 'm1'),
      scene.queue({ waitMs: WAIT_MS }, 'm2'),
    ];
  }

  async comes(model: number, consumer: string, priority: number): Promise<void> {
    this.came++;
    const candidates = this.models[model] as readonly Claimable[];
    const queue = this.queues[model];
    if (queue === undefined) {
      // A model without a queue: whatever is free and nobody waits for.
      const claim = this.scene.dispatcher.claim(candidates, null, null);
      const waiter = this.scene.waiter(this.queues[0] as never);
      if (claim === null) this.over.push(waiter);
      else
        this.running.push({
          lease: claim.lease,
          wait: { waiter, result: claim },
          candidates: [],
          tried: new Set(),
        });
      return;
    }
    await this.ask(this.scene.waiter(queue, consumer, priority), candidates, new Set());
  }

  async ask(waiter: Waiter, candidates: readonly Claimable[], tried: Set<SceneUpstream>): Promise<void> {
    const wait = this.scene.ask(waiter, candidates, tried.size === 0 ? null : tried);
    this.waiting.push({ wait, candidates, tried });
    await this.settle();
  }

  /** Everybody whose wait is over runs, or is over. */
  async settle(): Promise<void> {
    await told();
    for (const one of this.waiting.slice()) {
      if (one.wait.result === null) continue;
      this.waiting.splice(this.waiting.indexOf(one), 1);
      const claim = claimOf(one.wait);
      if (claim === null) this.over.push(one.wait.waiter);
      else this.running.push({ ...one, lease: claim.lease });
    }
  }

  async ends(which: number, failed: boolean): Promise<void> {
    const [one] = this.running.splice(which % Math.max(1, this.running.length), 1);
    if (one === undefined) return;
    one.lease.release();
    one.lease.release();
    if (failed && one.candidates.length > 0) {
      one.tried.add(one.lease.upstream as SceneUpstream);
      await this.ask(one.wait.waiter, one.candidates, one.tried);
    } else this.over.push(one.wait.waiter);
    await this.settle();
  }

  check(): void {
    const { clock, rooms } = this.scene;
    for (const upstream of this.upstreams) {
      const mine = this.running.filter(({ lease }) => lease.upstream === upstream).length;
      expect(upstream.slots.active).toBe(mine);
      expect(upstream.slots.occupied).toBeLessThanOrEqual(upstream.slots.limit);
    }
    const [machine] = rooms;
    const inGroup = this.running.filter(({ lease }) => machine?.seats.some((s) => s === lease.upstream.seat));
    expect(machine?.group?.slots.active).toBe(inGroup.length);
    expect(machine?.group?.slots.occupied).toBeLessThanOrEqual(2);
    // Nobody is lost, and nobody is in two places.
    expect(this.running.length + this.waiting.length + this.over.length).toBe(this.came);
    expect(this.scene.dispatcher.waiting).toBe(this.waiting.length);
    for (const [i, queue] of this.queues.entries()) {
      const mine = this.waiting.filter(({ candidates }) => candidates === this.models[i]).length;
      expect(queue.depth).toBe(mine);
    }
    // No slot is free that somebody who waits could use.
    for (const { candidates, tried, wait } of this.waiting) {
      expect(wait.waiter.leftMs(clock.time)).toBeGreaterThan(0);
      const usable = candidates.filter(
        ({ upstream }) =>
          !tried.has(upstream as SceneUpstream) &&
          upstream.restingMs(clock.time) === 0 &&
          upstream.seat?.free,
      );
      expect(usable).toEqual([]);
      expect(candidates.some(({ upstream }) => !tried.has(upstream as SceneUpstream))).toBe(true);
    }
  }
}

describe('Dispatcher, whatever happens', () => {
  it('keeps every limit, loses nobody, and leaves no slot free that somebody could use', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const world = new World();
        for (const one of steps) {
          const upstream = world.upstreams[('which' in one ? one.which : 0) % 5] as SceneUpstream;
          if (one.kind === 'comes') await world.comes(one.model, one.consumer, one.priority);
          else if (one.kind === 'ends') await world.ends(one.which, one.failed);
          else if (one.kind === 'time') world.scene.clock.advance(one.ms);
          else if (one.kind === 'rests') world.scene.rest(upstream, one.ms);
          else if (one.kind === 'wakes') world.scene.wake(upstream);
          else if (world.waiting.length > 0)
            world.scene.dispatcher.leave(
              (world.waiting[one.which % world.waiting.length] as (typeof world.waiting)[0]).wait.waiter,
            );
          await world.settle();
          world.check();
        }
        while (world.running.length > 0) await world.ends(0, false);
        world.scene.clock.advance(WAIT_MS * 2);
        while (world.running.length > 0) {
          await world.ends(0, false);
          world.scene.clock.advance(WAIT_MS);
        }
        await world.settle();
        while (world.running.length > 0) await world.ends(0, false);
        world.scene.clock.advance(WAIT_MS);
        world.check();
        expect([world.waiting.length, world.over.length]).toEqual([0, world.came]);
        for (const { slots } of world.upstreams) expect(slots.occupied).toBe(0);
        expect(world.scene.clock.alarms).toBe(0);
      }),
      { numRuns: 300 },
    );
  });

  it('serves the one who is next, of those who can use the slot', async () => {
    const arrival = fc.record({
      consumer: fc.constantFrom('a', 'b', 'c'),
      priority: fc.constantFrom(-1, 0, 2),
      on: fc.constantFrom(0, 1, 2),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(arrival, { minLength: 1, maxLength: 25 }),
        fc.array(fc.nat(1)),
        async (list, ends) => {
          const scene = new SlotScene();
          const room = scene.room({ limit: 1 });
          const [x, y] = [scene.upstream('x', 1, room), scene.upstream('y', 1, room)];
          const models = [[entry(x)], [entry(y)], [entry(y), entry(x)]];
          const queue = scene.queue();
          let holder = claimOf(scene.ask(scene.waiter(queue), [entry(x)]))?.lease;
          const line = list.map(({ consumer, on, priority }) => ({
            on,
            wait: scene.ask(scene.waiter(queue, consumer, priority), models[on] as Claimable[]),
          }));
          const names = new Map(line.map(({ wait }, i) => [wait.waiter, i]));
          const left = new Set(line);
          for (let i = 0; left.size > 0; i++) {
            // Sometimes one of the two rests: whoever needs it is passed by.
            const resting = ends[i] === 1 ? x : null;
            if (resting !== null) resting.restsUntil = scene.clock.time + 1;
            const able = [...room.line.inOrder()].filter(({ waiter }) =>
              waiter.candidates.some(({ upstream }) => upstream !== resting),
            );
            const next = able[0]?.waiter;
            holder?.release();
            await told();
            const served = [...left].filter(({ wait }) => wait.result !== null);
            expect(served.map(({ wait }) => names.get(wait.waiter))).toEqual(
              next === undefined ? [] : [names.get(next)],
            );
            for (const one of served) left.delete(one);
            holder = served[0] === undefined ? undefined : claimOf(served[0].wait)?.lease;
            if (holder !== undefined) expect(holder.upstream).not.toBe(resting);
            scene.clock.time += 1;
            if (holder === undefined) scene.wake(x);
            await told();
            for (const one of [...left].filter(({ wait }) => wait.result !== null)) {
              left.delete(one);
              holder = claimOf(one.wait)?.lease;
            }
          }
        },
      ),
    );
  });
});
