import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AttemptTimers, type TimeOver } from './attempt-timers.js';

interface Limits {
  readonly firstByte?: number;
  readonly firstToken?: number;
  readonly idle?: number;
  readonly request?: number;
  readonly stream?: boolean;
}

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate', 'performance'],
  });
});

afterEach(() => {
  vi.useRealTimers();
});

function timers(limits: Limits): { timers: AttemptTimers; over: string[] } {
  const over: string[] = [];
  const startedAt = performance.now();
  const owner = {
    timeOver: (which: TimeOver): void =>
      void over.push(`${which}@${10 * Math.floor((performance.now() - startedAt) / 10)}`),
  };
  const made = new AttemptTimers(
    { now: () => performance.now() },
    startedAt,
    {
      firstByteTimeoutMs: limits.firstByte ?? 0,
      firstTokenTimeoutMs: limits.firstToken ?? 0,
      idleTimeoutMs: limits.idle ?? 0,
    },
    limits.request ?? Infinity,
    limits.stream ?? true,
    owner,
  );
  made.start();
  return { timers: made, over };
}

/** A verdict follows its timer a turn of the loop later: a millisecond on this clock. */
const pass = (ms: number): void => void vi.advanceTimersByTime(ms);

describe('AttemptTimers', () => {
  it('costs no timer where nothing is limited', () => {
    const { over } = timers({});
    expect(vi.getTimerCount()).toBe(0);
    pass(1e6);
    expect(over).toEqual([]);
  });

  it.each<[Limits, string[]]>([
    [{ firstByte: 100 }, ['first_byte@100']],
    [{ firstToken: 100 }, ['first_token@100']],
    [{ request: 100 }, ['request@100']],
    [{ firstByte: 300, firstToken: 200, request: 100 }, ['request@100']],
    [{ firstByte: 100, firstToken: 100, request: 100 }, ['first_byte@100']],
    [{ firstByte: 100, firstToken: 100, stream: false }, []],
    [{ idle: 100 }, []],
  ])('with %o: %j', (limits, expected) => {
    const { timers: made, over } = timers(limits);
    pass(150);
    made.stop();
    pass(1e6);
    expect(over).toEqual(expected);
  });

  it('the first byte ends its wait, not that for the first token', () => {
    const { timers: made, over } = timers({ firstByte: 100, firstToken: 200 });
    pass(50);
    made.firstByte();
    pass(120);
    expect(over).toEqual([]);
    pass(35);
    expect(over).toEqual(['first_token@200']);
  });

  it('the first token ends its wait', () => {
    const { timers: made, over } = timers({ firstToken: 200, request: 1000 });
    made.firstByte();
    expect(made.awaitsToken).toBe(true);
    made.firstToken();
    expect(made.awaitsToken).toBe(false);
    pass(5000);
    expect(over).toEqual(['request@1000']);
  });

  it('a wait for the first token that nobody could end by taking over begins anew', () => {
    const { timers: made, over } = timers({ firstToken: 200 });
    pass(210);
    made.postponeFirstToken();
    pass(150);
    expect(over).toEqual(['first_token@200']);
    pass(100);
    expect(over).toEqual(['first_token@200', 'first_token@410']);
  });

  it('idle: counts from the last byte, and a byte arms no timer', () => {
    const { timers: made, over } = timers({ idle: 100 });
    pass(500);
    expect(over).toEqual([]);
    made.firstByte();
    for (let i = 0; i < 10; i++) {
      pass(60);
      made.byte();
      expect(vi.getTimerCount()).toBe(1);
    }
    expect(over).toEqual([]);
    pass(105);
    expect(over).toEqual(['idle@1200']);
  });

  it('idle: the time of a slow client is not the upstream’s', () => {
    const { timers: made, over } = timers({ idle: 100 });
    made.firstByte();
    pass(50);
    made.paused();
    // What was on its way when the pause was asked for.
    made.byte();
    pass(5000);
    expect(over).toEqual([]);
    made.resumed();
    pass(99);
    expect(over).toEqual([]);
    pass(5);
    expect(over).toEqual(['idle@5150']);
  });

  it('idle: a drain without a pause prolongs nothing', () => {
    const { timers: made, over } = timers({ idle: 100 });
    made.firstByte();
    pass(60);
    made.resumed();
    pass(45);
    expect(over).toEqual(['idle@100']);
  });

  it('judges a process that was blocked only after it has looked at its sockets', () => {
    let now = 0;
    const over: string[] = [];
    const owner = { timeOver: (which: TimeOver): void => void over.push(which) };
    const limits = { firstByteTimeoutMs: 0, firstTokenTimeoutMs: 0, idleTimeoutMs: 100 };
    const made = new AttemptTimers({ now: () => now }, 0, limits, Infinity, true, owner);
    made.start();
    made.firstByte();
    now = 5000;
    pass(101);
    expect(over).toEqual([]);
    // What had been waiting in the socket all the time.
    made.byte();
    pass(60);
    expect(over).toEqual([]);
    now = 10_000;
    pass(400);
    expect(over).toEqual(['idle']);
  });

  it('says nothing once stopped, whatever was about to fire', () => {
    const { timers: made, over } = timers({ firstByte: 100, idle: 50, request: 200 });
    vi.advanceTimersToNextTimer();
    made.stop();
    vi.runAllTimers();
    expect(over).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
