import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { inTime, PLUGIN_START_LIMIT_MS } from './plugin-time-limit.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

describe('inTime', () => {
  it('gives what comes, or what it throws, and leaves no timer', async () => {
    expect(await inTime(5, 10)).toBe(5);
    expect(await inTime(Promise.resolve(6), 10)).toBe(6);
    await expect(inTime(Promise.reject(new Error('mine')), 10)).rejects.toThrow('mine');
  });

  it('gives up on what does not come to an end', async () => {
    const waiting = inTime(new Promise(() => {}), PLUGIN_START_LIMIT_MS);
    const refused = expect(waiting).rejects.toThrow(/^did not come to an end within 30 s$/);
    await vi.advanceTimersByTimeAsync(PLUGIN_START_LIMIT_MS);
    await refused;
  });
});
