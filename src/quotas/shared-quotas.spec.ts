import { describe, expect, it, onTestFinished } from 'vitest';
import { ReplicaQuotas } from '../../test/support/replica-quotas.js';
import type { SharedStore, StoreListener } from '../state/shared-store.js';
import type { ReserveAnswer, SumChange, SumMemory, SumStates } from '../state/shared-sums.js';
import { StateUnavailable } from '../state/state-unavailable.js';

const LENGTH = 360 * 86_400_000;
const PART = Math.floor(Date.now() / LENGTH) * LENGTH;
const NAME = 'quota:["upstream","u","requests",31104000000,"calendar"]';

/** A store whose answers the test gives. */
class ScriptedStore {
  readonly replica = 'self';
  connected = true;
  listener: StoreListener | null = null;
  reserves: PromiseWithResolvers<ReserveAnswer>[] = [];
  asked: { mark: number; answer: PromiseWithResolvers<SumStates> }[] = [];
  readonly told: (readonly SumMemory[])[] = [];
  readonly changes: SumChange[] = [];
  heldBackMs = 0;
  readonly leave = () => Promise.resolve();
  readonly close = () => Promise.resolve();
  readonly renew = () => Promise.resolve({ replicas: 2, heldBackMs: 0, lost: [] });
  readonly enrol = () => Promise.resolve({ replicas: 2, heldBackMs: this.heldBackMs, excesses: [] });

  open(listener: StoreListener): void {
    this.listener = listener;
    listener.connected();
  }

  resume(memories: readonly SumMemory[]): Promise<void> {
    this.told.push(memories);
    return Promise.resolve();
  }

  settle(changes: readonly SumChange[]): Promise<void> {
    this.changes.push(...changes);
    return Promise.resolve();
  }

  reserve(): Promise<ReserveAnswer> {
    const answer = Promise.withResolvers<ReserveAnswer>();
    this.reserves.push(answer);
    return answer.promise;
  }

  sums(_sums: unknown, mark: number): Promise<SumStates> {
    const answer = Promise.withResolvers<SumStates>();
    this.asked.push({ mark, answer });
    return answer.promise;
  }

  /** Everybody has used so much. */
  answerSums(used: number, before = () => {}, heldBackMs = 0): void {
    const { answer, mark } = this.asked.pop() as (typeof this.asked)[number];
    this.listener?.happened({ kind: 'mark', number: mark });
    answer.resolve({
      nowMs: Date.now(),
      heldBackMs,
      states: [{ parts: new Map([[PART, used]]), reserved: new Map() }],
    });
    // In the same packet: heard before the reader of the answer goes on.
    before();
  }

  counted(amount: number): void {
    this.listener?.happened({ kind: 'counted', sum: NAME, part: PART, amount });
  }

  answer(answer: ReserveAnswer, before = () => {}): void {
    this.reserves.shift()?.resolve(answer);
    before();
  }
}

const settled = async () => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

async function replica(limit: number, used = 0) {
  const store = new ScriptedStore();
  const one = new ReplicaQuotas(
    { upstream: [{ requests: limit, per: 'P360D' }] },
    { url: '', prefix: '', store: store as unknown as SharedStore },
  );
  onTestFinished(() => one.close());
  await one.state?.open();
  await settled();
  store.answerSums(used);
  await settled();
  expect([one.synced, one.left()]).toEqual([true, limit - used]);
  return { one, store };
}

describe('SharedQuotas', () => {
  it('asks the store where something is left, and nobody where nothing is', async () => {
    const { one, store } = await replica(2, 1);
    const taking = one.take();
    store.answer({ kind: 'granted', parts: [PART] });
    const ticket = await taking;
    expect(one.left()).toBe(0);
    expect(await one.take()).toBeNull();
    expect(store.reserves).toEqual([]);
    ticket?.giveBack();
    expect(one.left()).toBe(1);
    expect(store.changes).toMatchObject([{ part: PART, used: -1, reserved: 0 }]);
  });

  it('believes the store where it says that nothing is left', async () => {
    const { one, store } = await replica(2);
    const taking = one.take();
    store.answer({ kind: 'used up', closed: [{ ask: 0, ms: 70_000 }] });
    expect(await taking).toBeNull();
    expect(one.closedMs()).toBeGreaterThan(60_000);
    store.counted(-1);
    expect(one.closedMs()).toBe(0);
  });

  it('is not shut for long by an answer behind which something was given back', async () => {
    const { one, store } = await replica(2, 1);
    const taking = one.take();
    store.answer({ kind: 'used up', closed: [{ ask: 0, ms: 70_000 }] }, () => store.counted(-1));
    expect(await taking).toBeNull();
    expect(one.closedMs()).toBeGreaterThan(0);
    expect(one.closedMs()).toBeLessThanOrEqual(1000);
  });

  it('hears what happened behind the sums that it asked for', async () => {
    const { one, store } = await replica(9, 1);
    store.listener?.lost('gone');
    store.listener?.connected();
    await settled();
    // Known to the sums.
    store.counted(1);
    store.answerSums(2, () => store.counted(1));
    await settled();
    expect([one.synced, one.left()]).toEqual([true, 6]);
    store.counted(1);
    expect(one.left()).toBe(5);
  });

  it('lives on its share while the store is away, and tells it afterwards', async () => {
    const { one, store } = await replica(6, 1);
    store.listener?.lost('gone');
    expect(one.left()).toBe(2);
    const first = await one.take();
    await one.take();
    expect(await one.take()).toBeNull();
    expect(one.closedMs()).toBe(1000);
    first?.giveBack();
    expect(one.closedMs()).toBe(0);
    store.heldBackMs = 60_000;
    store.listener?.connected();
    await settled();
    expect(store.told.at(-1)).toMatchObject([{ known: [[PART, 1]], untold: [[PART, 1]], reserved: 0 }]);
    // Nothing is given out: what is left of its share is all there is, and is told at once.
    store.answerSums(3, () => {}, 60_000);
    await settled();
    const held = one.take();
    store.answer({ kind: 'held back', ms: 60_000 });
    expect(await held).not.toBeNull();
    expect(store.changes.at(-1)).toMatchObject({ part: null, used: 1 });
    const none = one.take();
    store.answer({ kind: 'held back', ms: 60_000 });
    expect(await none).toBeNull();
    // Lost again, and the store has forgotten all once more: what was told is known, and told once.
    store.listener?.lost('gone');
    expect(one.left()).toBe(0);
    store.listener?.connected();
    await settled();
    const [memory] = store.told.at(-1) ?? [];
    expect(memory?.known.reduce((all, [, amount]) => all + amount, 0)).toBe(3);
    expect(memory?.untold).toEqual([]);
  });

  it('takes nothing by itself where the store does not answer in time', async () => {
    const { one, store } = await replica(6);
    const taking = one.take();
    store.reserves.shift()?.reject(new StateUnavailable('no answer in 250 ms'));
    expect(await taking).toBeNull();
    expect([one.left(), one.closedMs()]).toEqual([6, 0]);
  });

  it('lives on its share at once where the store goes before it has answered', async () => {
    const { one, store } = await replica(6);
    const taking = one.take();
    store.listener?.lost('gone');
    store.reserves.shift()?.reject(new StateUnavailable('gone'));
    expect(await taking).not.toBeNull();
    expect(one.left()).toBe(2);
  });
});
