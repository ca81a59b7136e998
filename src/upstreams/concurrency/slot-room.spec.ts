import { describe, expect, it } from 'vitest';
import { claimOf, entry, SlotScene, told } from '../../../test/support/slot-scene.js';

describe('a group', () => {
  it('serves who waits for one of its upstreams when another one is done', async () => {
    const scene = new SlotScene();
    const room = scene.room({ limit: 1 });
    const [x, y] = [scene.upstream('x', 4, room), scene.upstream('y', 4, room)];
    const queue = scene.queue();
    const holder = claimOf(scene.ask(scene.waiter(queue), [entry(x)]));
    const wait = scene.ask(scene.waiter(queue), [entry(y)]);
    expect(String(y.seat)).toBe('0/4 g=1/1');
    holder?.lease.release();
    await told();
    expect([x.slots.active, y.slots.active, room.group?.slots.active]).toEqual([0, 1, 1]);
    expect(claimOf(wait)?.candidate.upstream).toBe(y);
  });

  it('passes by who needs an upstream that is full by itself', async () => {
    const scene = new SlotScene();
    const room = scene.room({ limit: 2 });
    const [x, y] = [scene.upstream('x', 1, room), scene.upstream('y', 2, room)];
    const queue = scene.queue();
    const holders = [x, y].map((one) => claimOf(scene.ask(scene.waiter(queue), [entry(one)])));
    const [first, second] = [x, y].map((one) => scene.ask(scene.waiter(queue), [entry(one)]));
    holders[1]?.lease.release();
    await told();
    expect([first?.result, claimOf(second as never)?.candidate.upstream]).toEqual([null, y]);
  });

  it('stays taken for its pause after each exchange, in the count but not in flight', async () => {
    const scene = new SlotScene();
    const room = scene.room({ limit: 1, settleMs: 30 });
    const x = scene.upstream('x', Infinity, room);
    const queue = scene.queue();
    const holder = claimOf(scene.ask(scene.waiter(queue), [entry(x)]));
    holder?.lease.release();
    expect([x.slots.active, room.group?.slots.active, String(x.seat)]).toEqual([0, 0, '1/∞ g=1/1']);
    const wait = scene.ask(scene.waiter(queue), [entry(x)]);
    scene.clock.advance(29);
    await told();
    expect(wait.result).toBeNull();
    scene.clock.advance(1);
    await told();
    expect(claimOf(wait)?.lease.startedAt).toBe(1030);
  });

  it('lets a probe in only while nothing runs and nobody waits, and counts its pause too', () => {
    const scene = new SlotScene();
    const room = scene.room({ limit: 2, settleMs: 10 });
    const x = scene.upstream('x', Infinity, room);
    const queue = scene.queue({ waitMs: 1000 });
    const holder = claimOf(scene.ask(scene.waiter(queue), [entry(x)]));
    expect(room.holdForProbe()).toBeNull();
    holder?.lease.release();
    expect(room.holdForProbe()).toBeNull();
    scene.clock.advance(10);
    x.restsUntil = scene.clock.time + 500;
    const wait = scene.ask(scene.waiter(queue), [entry(x)]);
    expect(room.holdForProbe()).toBeNull();
    scene.dispatcher.leave(wait.waiter);
    const giveBack = room.holdForProbe();
    expect([room.group?.slots.active, room.holdForProbe()]).toEqual([1, null]);
    giveBack?.();
    expect([room.group?.slots.active, room.group?.slots.occupied]).toEqual([0, 1]);
    scene.clock.advance(10);
    expect(room.group?.slots.occupied).toBe(0);
  });
});
