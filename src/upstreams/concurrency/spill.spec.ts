import { describe, expect, it } from 'vitest';
import { claimOf, entry, SlotScene, told } from '../../../test/support/slot-scene.js';
import type { SpillConfig } from '../../config/gateway-config.js';

const after = (afterMs: number, minPriority = -Infinity): SpillConfig => ({ afterMs, minPriority });

/** A free one with `spill_after` behind one that somebody holds. */
function spilling(spill: SpillConfig, config: Parameters<SlotScene['queue']>[0] = {}) {
  const scene = new SlotScene();
  const [cheap, paid] = [scene.upstream('cheap', 1), scene.upstream('paid', 2)];
  const queue = scene.queue(config);
  const list = [entry(cheap), entry(paid, spill)];
  const ask = (priority = 0) => scene.ask(scene.waiter(queue, 'a', priority), list);
  const holder = claimOf(ask());
  if (holder === null) throw new Error('nothing was free');
  return { scene, cheap, paid, queue, ask, holder };
}

describe('an entry with spill_after', () => {
  it('is taken after that wait', async () => {
    const { scene, ask, paid } = spilling(after(50));
    const wait = ask();
    scene.clock.advance(49);
    await told();
    expect(wait.result).toBeNull();
    scene.clock.advance(1);
    await told();
    expect([claimOf(wait)?.candidate.upstream, scene.spills]).toEqual([paid, ['m/paid=waited']]);
  });

  it('is not taken while an earlier one is free', () => {
    const { ask, cheap, holder, scene } = spilling(after(0));
    holder.lease.release();
    expect(claimOf(ask())?.candidate.upstream).toBe(cheap);
    expect(scene.spills).toEqual([]);
  });

  it('is taken at once when the estimate of the earlier ones exceeds that time', async () => {
    const { scene, ask, holder } = spilling(after(50));
    scene.clock.advance(40);
    holder.lease.release();
    claimOf(ask());
    // 40 ms are left of the one that runs, so the next waits 40 ms, the one behind it 80 ms.
    const [next, behind] = [ask(), ask()];
    await told();
    expect([next.result, claimOf(behind)?.candidate.upstream.id, scene.spills]).toEqual([
      null,
      'paid',
      ['m/paid=estimate'],
    ]);
  });

  it('takes the time the oldest exchange has run off the estimate', () => {
    const { scene, ask, holder } = spilling(after(50));
    scene.clock.advance(40);
    holder.lease.release();
    claimOf(ask());
    scene.clock.advance(35);
    const waits = [ask(), ask()];
    expect(waits.map(({ result }) => result)).toEqual([null, null]);
  });

  it('is taken by who is overtaken, when that makes the estimate too long', async () => {
    const { scene, ask, holder, paid } = spilling(after(50));
    scene.clock.advance(40);
    holder.lease.release();
    claimOf(ask());
    const low = ask();
    const high = ask(5);
    await told();
    expect([claimOf(low)?.candidate.upstream, high.result, scene.spills]).toEqual([
      paid,
      null,
      ['m/paid=estimate'],
    ]);
  });

  it('is taken at once when all earlier ones rest, also by those who wait', async () => {
    const { scene, ask, cheap, paid } = spilling(after(5000));
    const wait = ask();
    scene.rest(cheap, 1000);
    await told();
    expect(claimOf(wait)?.candidate.upstream).toBe(paid);
    expect(claimOf(ask())?.candidate.upstream).toBe(paid);
    expect(scene.spills).toEqual(['m/paid=unavailable', 'm/paid=unavailable']);
  });

  it('is taken at once when all earlier ones failed', () => {
    const { scene, queue, cheap, paid } = spilling(after(5000));
    const list = [entry(cheap), entry(paid, after(5000))];
    expect(claimOf(scene.ask(scene.waiter(queue), list, new Set([cheap])))?.candidate.upstream).toBe(paid);
    expect(scene.spills).toEqual(['m/paid=unavailable']);
  });

  it('is taken when the queue is full, by who finds no place', async () => {
    const { scene, ask, paid } = spilling(after(5000), { size: 1 });
    const waits = [ask(), ask(), ask()];
    await told();
    expect(waits.map((wait) => claimOf(wait)?.candidate.upstream)).toEqual([undefined, paid, paid]);
    expect(ask().result).toEqual({ unserved: 'queue_full' });
    expect(scene.spills).toEqual(['m/paid=full', 'm/paid=full']);
  });

  it('is never taken by a lower priority than it asks for', async () => {
    const { scene, ask, cheap } = spilling(after(10, 3), { waitMs: 100 });
    const [low, high] = [ask(2), ask(3)];
    scene.clock.advance(10);
    await told();
    expect([low.result, claimOf(high)?.candidate.upstream.id]).toEqual([null, 'paid']);
    scene.rest(cheap, 1000);
    await told();
    expect(low.result).toEqual({ unserved: 'closed' });
  });

  it('is handed to the next who may use it when it is released', async () => {
    const { scene, ask, queue, paid } = spilling(after(50));
    const list = [entry(paid)];
    const both = [1, 2].map(() => claimOf(scene.ask(scene.waiter(queue), list)));
    const [old] = [ask()];
    scene.clock.advance(60);
    const young = ask();
    both[0]?.lease.release();
    await told();
    expect([claimOf(old)?.candidate.upstream, young.result]).toEqual([paid, null]);
  });

  it('is taken by who came first, also where the estimates of two grow in one step and in different lines', async () => {
    const scene = new SlotScene();
    const [first, second, paid] = ['first', 'second', 'paid'].map((id) => scene.upstream(id, 1));
    const lists = [[first, second], [second], [first]].map((own) =>
      [...own.map((upstream) => entry(upstream!)), entry(paid!, after(50))],
    ); // prettier-ignore
    const queue = scene.queue();
    const ask = (list: number, priority = 0) => scene.ask(scene.waiter(queue, 'a', priority), lists[list]!);
    const learnt = [ask(0), ask(0)];
    scene.clock.advance(40);
    for (const one of learnt) claimOf(one)?.lease.release();
    // 40 ms are left of each, for which the two wait; who comes then makes it 80 ms for both.
    for (const one of [ask(0), ask(0)]) expect(claimOf(one)).not.toBeNull();
    const [earlier, later] = [ask(1), ask(2)];
    await told();
    expect([earlier.result, later.result]).toEqual([null, null]);
    ask(0, 5);
    await told();
    expect([claimOf(earlier)?.candidate.upstream, later.result, scene.spills]).toEqual([
      paid,
      null,
      ['m/paid=estimate'],
    ]);
  });

  it('is taken by the consumer whose turn it is there, not where the others rest', async () => {
    const scene = new SlotScene();
    const [cheap, paid] = [scene.upstream('cheap', 1), scene.upstream('paid', 1)];
    const list = [entry(cheap), entry(paid, after(5000))];
    const queue = scene.queue();
    const ask = (consumer: string, candidates = list) => scene.ask(scene.waiter(queue, consumer), candidates);
    ask('x');
    const holder = ask('x', [entry(paid)]);
    const served = ask('a', [entry(paid)]);
    const [a, b] = [ask('a'), ask('b')];
    claimOf(holder)?.lease.release();
    await told();
    // Of the paid one a has had its turn, of the other nobody.
    claimOf(served)?.lease.release();
    scene.rest(cheap, 10_000_000);
    await told();
    expect([a.result, claimOf(b)?.candidate.upstream]).toEqual([null, paid]);
  });
});
