import { describe, expect, it } from 'vitest';
import type { ModelConfig } from '../config/gateway-config.js';
import { requestLimitMs, requestOver, stagesLimit } from './attempt-limits.js';

const BEGAN_AT = 1000;
const timed = (deadlineAt: number) => ({
  deadlineAt,
  model: { deadlineMs: 700 } as ModelConfig,
});
const limits = (requestTimeoutMs: number, firstByteTimeoutMs = 0) => ({
  requestTimeoutMs,
  firstByteTimeoutMs,
});

describe('the time of an attempt', () => {
  it.each<[deadlineAt: number, ownMs: number, limitMs: number, words: string]>([
    [Infinity, 300, 300, 'request timeout after 300ms'],
    [1500, 300, 300, 'request timeout after 300ms'],
    [1300, 300, 300, 'request timeout after 300ms'],
    [1200, 300, 200, 'deadline of 700ms is over'],
    [1200, 0, 200, 'deadline of 700ms is over'],
    [900, 300, 0, 'deadline of 700ms is over'],
  ])('deadline at %d, own time %d: %d, "%s"', (deadlineAt, ownMs, limitMs, words) => {
    expect(requestLimitMs(timed(deadlineAt), limits(ownMs), BEGAN_AT)).toBe(limitMs);
    expect(requestOver(timed(deadlineAt), limits(ownMs), BEGAN_AT)).toBe(words);
  });

  it('may have no end', () => {
    expect(requestLimitMs(timed(Infinity), limits(0), BEGAN_AT)).toBe(Infinity);
    expect(stagesLimit(timed(Infinity), limits(0), BEGAN_AT, true).dueAt).toBe(Infinity);
  });
});

describe('the time of the stages before it', () => {
  it.each<[firstByteMs: number, streamAsked: boolean, dueAt: number, result: string, reason: string]>([
    [0, true, 1300, 'net_err', 'request timeout after 300ms'],
    [200, true, 1200, 'timeout', 'no first byte within 200ms'],
    [200, false, 1300, 'net_err', 'request timeout after 300ms'],
    [400, true, 1300, 'net_err', 'request timeout after 300ms'],
  ])('first byte %d, stream %s: to %d', (firstByteMs, streamAsked, dueAt, result, reason) => {
    expect(stagesLimit(timed(1500), limits(300, firstByteMs), BEGAN_AT, streamAsked)).toEqual({
      dueAt,
      result,
      reason,
    });
  });
});
