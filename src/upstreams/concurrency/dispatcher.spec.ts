import { describe, expect, it } from 'vitest';
import type { UnservedReason, Waiter } from './waiter.js';
import { claimOf, entry, SlotScene, told } from '../../../test/support/slot-scene.js';

/** One upstream with one slot, which somebody holds. */
function occupied(config: Parameters<SlotScene['queue']>[0] = {}) {
  const scene = new SlotScene();
  const upstream = scene.upstream('u', 1);
  const queue = scene.queue(config);
  const list = [entry(upstream)];
  const ask = (consumer = 'a', priority = 0, bytes = 1) =>
    scene.ask(scene.waiter(queue, consumer, priority, bytes), list);
  const holder = claimOf(ask());
  if (holder === null) throw new Error('nothing was free');
  return { scene, upstream, queue, list, ask, holder };
}

describe('a wait', () => {
  it('ends with the slot, in the step in which that is released', async () => {
    const { scene, ask, holder, upstream } = occupied();
    const [first, second] = [ask(), ask()];
    holder.lease.release();
    expect(first.waiter.waiting).toBe(false);
    // Nobody comes between: the slot is taken again before anybody else could look.
    expect(scene.dispatcher.claim([entry(upstream)], null, null)).toBeNull();
    await told();
    expect([claimOf(first)?.lease.startedAt, second.result]).toEqual([1000, null]);
  });

  it('ends at its deadline, and takes no slot afterwards', async () => {
    const { scene, ask, holder, upstream } = occupied({ waitMs: 50 });
    const wait = ask();
    scene.clock.advance(49);
    await told();
    expect(wait.result).toBeNull();
    scene.clock.advance(1);
    await told();
    expect(wait.result).toEqual({ unserved: 'queue_timeout' });
    holder.lease.release();
    expect([upstream.slots.active, scene.waits]).toEqual([0, ['timeout:50']]);
  });

  it('ends as in vain when something is looked at between its deadline and its alarm', async () => {
    const scene = new SlotScene();
    const [x, y] = [scene.upstream('x', 1), scene.upstream('y', 1)];
    const holders = [x, y].map((one) => claimOf(scene.ask(scene.waiter(scene.queue()), [entry(one)])));
    const wait = scene.ask(scene.waiter(scene.queue({ waitMs: 50 })), [entry(x), entry(y)]);
    // The alarm is late.
    scene.clock.time += 50.4;
    scene.rest(y, 1000);
    await told();
    expect([wait.result, scene.waits]).toEqual([{ unserved: 'queue_timeout' }, ['timeout:50']]);
    for (const holder of holders) holder?.lease.release();
  });

  it('that is over before it begins is in vain, and counted where it has waited elsewhere', async () => {
    const { scene, ask, holder, list } = occupied({ waitMs: 50 });
    const begin = ({ waiter }: { readonly waiter: Waiter }, inVain: UnservedReason, budgetMs: number) =>
      scene.dispatcher.wait(waiter, list, null, budgetMs, inVain);
    const fresh = { waiter: scene.waiter(scene.queue({ waitMs: 50 })) };
    expect(begin(fresh, 'queue_timeout', -0.3)).toEqual({ unserved: 'queue_timeout' });
    expect(scene.waits).toEqual([]);
    const home = begin(fresh, 'closed', 30);
    scene.clock.advance(30);
    expect(await home).toEqual({ unserved: 'closed' });
    expect(begin(fresh, 'queue_timeout', -0.3)).toEqual({ unserved: 'queue_timeout' });
    expect(scene.waits).toEqual(['timeout:30']);
    expect(ask().result).toBeNull();
    holder.lease.release();
  });

  it('costs nothing when its client leaves', async () => {
    const { scene, ask, holder, queue } = occupied({ size: 1 });
    const wait = ask();
    scene.dispatcher.leave(wait.waiter);
    scene.dispatcher.leave(wait.waiter);
    await told();
    expect([wait.result, queue.depth, scene.dispatcher.waiting, scene.clock.alarms]).toEqual([
      { unserved: 'left' },
      0,
      0,
      0,
    ]);
    expect(ask().result).toBeNull();
    holder.lease.release();
  });

  it('goes on after a failed attempt with the time that is left, at its old place', async () => {
    const scene = new SlotScene();
    const [x, y] = [scene.upstream('x', 1), scene.upstream('y', 1)];
    const queue = scene.queue({ waitMs: 100 });
    const both = [entry(x), entry(y)];
    const holders = [x, y].map((one) => claimOf(scene.ask(scene.waiter(queue), [entry(one)])));
    const wait = scene.ask(scene.waiter(queue), both);
    const later = scene.ask(scene.waiter(queue), [entry(y)]);
    scene.clock.advance(60);
    holders[0]?.lease.release();
    await told();
    scene.clock.advance(5000);
    claimOf(wait)?.lease.release();
    expect(later.result).toBeNull();
    await told();
    const newcomer = scene.ask(scene.waiter(queue), [entry(y)]);
    const again = scene.ask(wait.waiter, both, new Set([x]));
    expect([again.result, again.waiter.waitedMs(scene.clock.time), again.waiter.position()]).toEqual([
      null,
      60,
      1,
    ]);
    scene.clock.advance(39);
    holders[1]?.lease.release();
    await told();
    expect(claimOf(again)?.candidate.upstream).toBe(y);
    expect([newcomer.result, scene.waits]).toEqual([null, ['served:60', 'timeout:100', 'served:39']]);
  });

  it('is no wait where the time is used up', () => {
    const { scene, ask, list, upstream } = occupied({ waitMs: 50 });
    const { waiter } = ask();
    scene.clock.advance(50);
    expect(scene.dispatcher.wait(waiter, list, null, 0)).toEqual({ unserved: 'queue_timeout' });
    expect(scene.dispatcher.wait(waiter, list, new Set([upstream]), 10)).toEqual({ unserved: 'closed' });
  });

  it('ends at once with the service, and none begins', async () => {
    const { scene, ask } = occupied();
    const wait = ask();
    scene.dispatcher.close(scene.rooms);
    await told();
    expect([wait.result, ask().result]).toEqual([
      { unserved: 'shutting_down' },
      { unserved: 'shutting_down' },
    ]);
    expect(scene.clock.alarms).toBe(0);
  });
});

describe('a full queue', () => {
  it('refuses, by number and by bytes', () => {
    const { ask } = occupied({ size: 2, maxBytes: 100 });
    expect(ask('a', 0, 101).result).toEqual({ unserved: 'queue_full' });
    expect(ask('a', 0, 60).result).toBeNull();
    expect(ask('a', 0, 41).result).toEqual({ unserved: 'queue_full' });
    expect(ask('a', 0, 40).result).toBeNull();
    expect(ask('a', 0, 0).result).toEqual({ unserved: 'queue_full' });
  });

  it('lets a higher priority take the place of the newest of the lowest', async () => {
    const { scene, ask, queue } = occupied({ size: 4 });
    const waits = [ask('a', -1), ask('b', -1), ask('a', 0), ask('a', 3)];
    expect(ask('c', -1).result).toEqual({ unserved: 'queue_full' });
    expect(ask('c', 1).result).toBeNull();
    await told();
    expect(waits.map(({ result }) => result)).toEqual([null, { unserved: 'queue_full' }, null, null]);
    expect([queue.depth, scene.waits]).toEqual([4, []]);
  });

  it('sends away as many as the newcomer needs bytes for, or none', async () => {
    const { ask } = occupied({ maxBytes: 100 });
    const waits = [ask('a', 0, 30), ask('a', 0, 30), ask('a', 2, 40)];
    expect(ask('a', 1, 70).result).toEqual({ unserved: 'queue_full' });
    expect(ask('a', 1, 50).result).toBeNull();
    await told();
    expect(waits.map(({ result }) => result)).toEqual([
      { unserved: 'queue_full' },
      { unserved: 'queue_full' },
      null,
    ]);
  });

  it('sends away one for one, also where those who came back have made it fuller than it should be', async () => {
    const scene = new SlotScene();
    const [x, y] = [scene.upstream('x', 1), scene.upstream('y', 1)];
    const queue = scene.queue({ size: 1 });
    const list = [entry(x), entry(y)];
    const ask = (priority = 0) => scene.ask(scene.waiter(queue, 'a', priority), list);
    const [onX, , back] = [ask(), ask(), ask()];
    claimOf(onX)?.lease.release();
    await told();
    // Served at x, where it failed; meanwhile somebody else took its place in the queue.
    claimOf(back)?.lease.release();
    const runs = ask();
    const other = ask();
    const again = scene.ask(back.waiter, list, new Set([x]));
    const newcomer = ask(1);
    await told();
    expect([other.result, again.result, newcomer.result]).toEqual([{ unserved: 'queue_full' }, null, null]);
    expect([claimOf(runs)?.candidate.upstream, queue.depth]).toEqual([x, 2]);
  });

  it('does not take the place of one whom ageing has lifted', async () => {
    const { scene, ask } = occupied({ size: 2, ageingMs: 10 });
    const [old] = [ask('a', 0), ask('b', 5)];
    scene.clock.advance(10);
    expect(ask('c', 5).result).toEqual({ unserved: 'queue_full' });
    await told();
    expect(old.result).toBeNull();
  });
});

describe('where all candidates rest', () => {
  it('waits when the soonest is back before the deadline, and takes it then', async () => {
    const scene = new SlotScene();
    const [x, y] = [scene.upstream('x', 1), scene.upstream('y', 1)];
    scene.rest(x, 80);
    scene.rest(y, 40);
    const wait = scene.ask(scene.waiter(scene.queue({ waitMs: 50 })), [entry(x), entry(y)]);
    scene.clock.advance(39);
    await told();
    expect(wait.result).toBeNull();
    scene.clock.advance(1);
    await told();
    expect(claimOf(wait)?.candidate.upstream).toBe(y);
  });

  it('does not wait when all are back too late', () => {
    const scene = new SlotScene();
    const upstream = scene.upstream('u', 1);
    scene.rest(upstream, 51);
    const wait = scene.ask(scene.waiter(scene.queue({ waitMs: 50 })), [entry(upstream)]);
    expect(wait.result).toEqual({ unserved: 'closed' });
  });

  it('is sent away when a rest begins that is too long, not when it is short', async () => {
    const { scene, ask, upstream } = occupied({ waitMs: 50 });
    const wait = ask();
    scene.clock.advance(20);
    scene.rest(upstream, 29);
    await told();
    expect(wait.result).toBeNull();
    scene.rest(upstream, 31);
    await told();
    expect(wait.result).toEqual({ unserved: 'closed' });
  });

  it('is served when a rest ends before its time', async () => {
    const scene = new SlotScene();
    const upstream = scene.upstream('u', 1);
    scene.rest(upstream, 40);
    const wait = scene.ask(scene.waiter(scene.queue()), [entry(upstream)]);
    scene.wake(upstream);
    await told();
    expect(claimOf(wait)).not.toBeNull();
  });

  it('serves as many as there are slots when a rest ends', async () => {
    const scene = new SlotScene();
    const upstream = scene.upstream('u', 2);
    scene.rest(upstream, 40);
    const queue = scene.queue();
    const waits = [1, 2, 3].map(() => scene.ask(scene.waiter(queue), [entry(upstream)]));
    scene.wake(upstream);
    await told();
    expect(waits.map((wait) => claimOf(wait) !== null)).toEqual([true, true, false]);
  });

  it('comes before a newcomer also where the rest is over and no alarm has rung yet', async () => {
    const scene = new SlotScene();
    const upstream = scene.upstream('u', 1);
    scene.rest(upstream, 40);
    const wait = scene.ask(scene.waiter(scene.queue()), [entry(upstream)]);
    // Time alone, as where the process was busy.
    scene.clock.time += 41;
    expect(scene.dispatcher.claim([entry(upstream)], null, null)).toBeNull();
    await told();
    expect(claimOf(wait)?.candidate.upstream).toBe(upstream);
  });

  it('looks again when a gate opens that closed while it waited, and goes when that is too late', async () => {
    const { scene, upstream, queue, holder } = occupied({ waitMs: 100 });
    let opensAt = 0;
    const gate = { reason: 'no_key' as const, closedMs: () => Math.max(0, opensAt - scene.clock.time) };
    const list = [{ ...entry(upstream), gates: [gate] }];
    const first = scene.ask(scene.waiter(queue), list);
    scene.clock.advance(80);
    const second = scene.ask(scene.waiter(queue), list);
    opensAt = scene.clock.time + 30;
    holder.lease.release();
    await told();
    expect([first.result, second.result]).toEqual([{ unserved: 'closed' }, null]);
    scene.clock.advance(30);
    await told();
    expect(claimOf(second)?.lease.startedAt).toBe(opensAt);
  });

  it('looks again when a gate opens', async () => {
    const scene = new SlotScene();
    const upstream = scene.upstream('u', 1);
    const opensAt = scene.clock.time + 30;
    const gate = { reason: 'quota' as const, closedMs: () => Math.max(0, opensAt - scene.clock.time) };
    const wait = scene.ask(scene.waiter(scene.queue()), [{ ...entry(upstream), gates: [gate] }]);
    scene.clock.advance(29);
    await told();
    expect(wait.result).toBeNull();
    scene.clock.advance(1);
    await told();
    expect(claimOf(wait)).not.toBeNull();
  });
});

describe('ten thousand who wait', () => {
  it('have one alarm each and are all served in order', async () => {
    const { scene, ask, holder } = occupied({ size: 20_000 });
    const waits = Array.from({ length: 10_000 }, () => ask());
    expect(scene.clock.alarms).toBe(10_000);
    let lease: typeof holder.lease | undefined = holder.lease;
    for (const wait of waits) {
      lease?.release();
      await told();
      lease = claimOf(wait)?.lease;
      expect(lease).toBeDefined();
    }
    lease?.release();
    expect(scene.clock.alarms).toBe(0);
  });
});
