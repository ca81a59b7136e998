import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { EdgeContext } from './edge-context.js';
import { OpenRequests } from './open-requests.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function upload({ isWhole = false, isBehind = false } = {}) {
  const refused: string[] = [];
  const reader = {
    arrivedBytes: 0,
    get over() {
      return refused.length > 0;
    },
    refuse: (error: { readonly code: string }) => void refused.push(error.code),
  };
  const response = { socket: isBehind ? null : {}, req: { complete: isWhole } };
  return { context: { reader, response } as unknown as EdgeContext, reader, response, refused };
}

describe('refuseStandingUploads', () => {
  it('refuses a body that stands still once it has stood for 3 s, and one that arrives when it stops', () => {
    const open = new OpenRequests();
    const [standing, going] = [upload(), upload()];
    for (const { context } of [standing, going]) open.enter(context);
    onTestFinished(open.refuseStandingUploads());
    vi.advanceTimersByTime(2999);
    expect(standing.refused).toEqual([]);
    for (let i = 0; i < 5; i++) {
      going.reader.arrivedBytes++;
      vi.advanceTimersByTime(3000);
    }
    expect([standing.refused, going.refused]).toEqual([['shutting_down'], []]);
    vi.advanceTimersByTime(3000);
    expect([standing.refused, going.refused]).toEqual([['shutting_down'], ['shutting_down']]);
  });

  it('leaves those alone whose body is whole, or who wait behind another answer until it is their turn', () => {
    const open = new OpenRequests();
    const [whole, behind] = [upload({ isWhole: true }), upload({ isBehind: true })];
    for (const { context } of [whole, behind]) open.enter(context);
    onTestFinished(open.refuseStandingUploads());
    vi.advanceTimersByTime(10_000);
    expect([whole.refused, behind.refused]).toEqual([[], []]);
    (behind.response as { socket: unknown }).socket = {};
    vi.advanceTimersByTime(6000);
    expect([whole.refused, behind.refused]).toEqual([[], ['shutting_down']]);
  });

  it('refuses nobody any more once that was ended', () => {
    const open = new OpenRequests();
    const standing = upload();
    open.enter(standing.context);
    open.refuseStandingUploads()();
    expect(vi.getTimerCount()).toBe(0);
  });
});
