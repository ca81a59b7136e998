import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { QuietPart } from './quiet-part.js';
import { SharedState } from './shared-state.js';
import { StateUnavailable } from './state-unavailable.js';
import type { SharedStore, StoreListener } from './shared-store.js';

describe('SharedState', () => {
  it('goes by what was told of the number of replicas behind an answer', async () => {
    let listener: StoreListener | null = null;
    const enrolled = Promise.withResolvers<{ heldBackMs: number; replicas: number; excesses: [] }>();
    const store = {
      open: (told: StoreListener) => (listener = told),
      enrol: () => enrolled.promise,
      leave: () => Promise.resolve(),
      close: () => Promise.resolve(),
    } as unknown as SharedStore;
    const log = { lost: () => {}, back: () => {} };
    const state = new SharedState({
      store, clock: { now: () => 0 }, onError: 'local', leaseMs: 15_000, timeoutMs: 50, patienceMs: 5000, log,
    }); // prettier-ignore
    onTestFinished(() => state.close());
    const open = state.open();
    const told = listener as StoreListener | null;
    told?.connected();
    enrolled.resolve({ heldBackMs: 0, replicas: 1, excesses: [] });
    // In the same packet: before the answer's reader goes on.
    told?.happened({ kind: 'replicas', count: 2 });
    await open;
    expect(state.replicas).toBe(2);
    told?.happened({ kind: 'replicas', count: 1 });
    expect(state.replicas).toBe(1);
  });

  it('uses shares only once all others must have noticed too', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    let listener: StoreListener | null = null;
    const store = {
      connected: false,
      open: (told: StoreListener) => (listener = told),
      enrol: () => Promise.resolve({ heldBackMs: 0, replicas: 2, excesses: [] }),
      close: () => Promise.resolve(),
    } as unknown as SharedStore;
    const log = { lost: () => {}, back: () => {} };
    const state = new SharedState({
      store, clock: { now: () => 0 }, onError: 'local', leaseMs: 15_000, timeoutMs: 50, patienceMs: 5000, log,
    }); // prettier-ignore
    let alone = 0;
    class Part extends QuietPart {
      override alone(): void {
        alone++;
      }
      joined(): void {}
      happened(): void {}
    }
    state.join(new Part());
    const open = state.open();
    const told = listener as StoreListener | null;
    told?.connected();
    await open;
    told?.lost('gone', 1500);
    vi.advanceTimersByTime(1549);
    expect(alone).toBe(0);
    vi.advanceTimersByTime(1);
    expect(alone).toBe(1);
    await state.close();
  });

  it('takes nobody for gone who need not have come back yet, and waits for its share no longer for trying', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    let listener: StoreListener | null = null;
    const answers = [
      { heldBackMs: 0, replicas: 3, excesses: [] },
      { heldBackMs: 15_000, replicas: 1, excesses: [] },
    ];
    const store = {
      connected: true,
      open: (told: StoreListener) => (listener = told),
      enrol: () => {
        const answer = answers.shift();
        return answer === undefined ? Promise.reject(new StateUnavailable('no')) : Promise.resolve(answer);
      },
      close: () => Promise.resolve(),
      leave: () => Promise.resolve(),
    } as unknown as SharedStore;
    const log = { lost: () => {}, back: () => {} };
    const clock = { now: () => performance.now() };
    const state = new SharedState({
      store, clock, onError: 'local', leaseMs: 600_000, timeoutMs: 1000, patienceMs: 5000, log,
    }); // prettier-ignore
    const shares: number[] = [];
    class Part extends QuietPart {
      override alone(): void {
        shares.push(state.replicas);
      }
      joined(): void {}
      happened(): void {}
    }
    state.join(new Part());
    const open = state.open();
    const told = listener as StoreListener | null;
    told?.connected();
    await open;
    told?.lost('gone');
    told?.connected();
    await vi.advanceTimersByTimeAsync(10);
    expect(state.ok).toBe(true);
    told?.happened({ kind: 'replicas', count: 2 });
    expect(state.replicas).toBe(3);
    told?.lost('gone again');
    // Every 500 ms it is tried, in vain.
    told?.connected();
    await vi.advanceTimersByTimeAsync(999);
    expect(shares).toEqual([]);
    await vi.advanceTimersByTimeAsync(2);
    expect(shares[0]).toBe(3);
    await state.close();
  });
});
