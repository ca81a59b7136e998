import { type Clock, timerDelay } from '../common/time/clock.js';
import type { UpstreamConfig } from '../config/gateway-config.js';

/** Whose patience is over: for the first byte, the first meaningful event, the next byte, or the whole exchange. */
export type TimeOver = 'first_byte' | 'first_token' | 'idle' | 'request';

/** In milliseconds; 0 = no limit. */
export type TimerLimits = Pick<
  UpstreamConfig,
  'firstByteTimeoutMs' | 'firstTokenTimeoutMs' | 'idleTimeoutMs'
>;

export interface TimerOwner {
  /** Never called after {@link AttemptTimers.stop}, nor for something that came in time. */
  timeOver(which: TimeOver): void;
}

/** A timer that fires later than this after its time was held up by a blocked process. */
const LATE_MS = 50;

/**
 * All that one attempt waits for, on one timer: the nearest of what is limited. Lives as long as the attempt; owns no
 * verdict, only says whose time is over. A byte costs no timer: the time of the last one is looked at when it fires.
 */
export class AttemptTimers {
  #timer: NodeJS.Timeout | null = null;
  #stopped = false;
  #firstByteDueAt: number;
  #firstTokenDueAt: number;
  readonly #requestDueAt: number;
  readonly #idleMs: number;
  /** Infinity before the first byte, and while it is the client that takes nothing. */
  #idleSince = Infinity;

  /**
   * `startedAt` is monotonic, `requestLimitMs` of the whole attempt, Infinity for none. Only the answer to a stream has a first byte and a first token to wait for.
   */
  constructor(
    private readonly clock: Clock,
    startedAt: number,
    private readonly limits: TimerLimits,
    requestLimitMs: number,
    streamAsked: boolean,
    private readonly owner: TimerOwner,
  ) {
    const { firstByteTimeoutMs, firstTokenTimeoutMs, idleTimeoutMs } = limits;
    this.#firstByteDueAt = streamAsked ? dueAt(startedAt, firstByteTimeoutMs) : Infinity;
    this.#firstTokenDueAt = streamAsked ? dueAt(startedAt, firstTokenTimeoutMs) : Infinity;
    this.#requestDueAt = startedAt + requestLimitMs;
    this.#idleMs = idleTimeoutMs > 0 ? idleTimeoutMs : Infinity;
  }

  /** Whether anybody waits for the first meaningful event. */
  get awaitsToken(): boolean {
    return this.#firstTokenDueAt !== Infinity;
  }

  start(): void {
    this.#arm();
  }

  firstByte(): void {
    const awaited = this.#firstByteDueAt !== Infinity;
    this.#firstByteDueAt = Infinity;
    if (this.#idleMs !== Infinity) this.#idleSince = this.clock.now();
    if (awaited || this.#idleMs !== Infinity) this.#arm();
  }

  /** A further byte. */
  byte(): void {
    if (this.#idleMs !== Infinity && this.#idleSince !== Infinity) this.#idleSince = this.clock.now();
  }

  firstToken(): void {
    if (!this.awaitsToken) return;
    this.#firstTokenDueAt = Infinity;
    this.#arm();
  }

  /** Nobody can take over yet: the wait for the first token begins anew. */
  postponeFirstToken(): void {
    this.#firstTokenDueAt = dueAt(this.clock.now(), this.limits.firstTokenTimeoutMs);
    this.#arm();
  }

  /** The client is slow, so the upstream is not read: its silence is not its own. */
  paused(): void {
    this.#idleSince = Infinity;
  }

  resumed(): void {
    if (this.#idleMs === Infinity || this.#idleSince !== Infinity) return;
    this.#idleSince = this.clock.now();
    this.#arm();
  }

  stop(): void {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #dueAt(which: TimeOver): number {
    switch (which) {
      case 'first_byte':
        return this.#firstByteDueAt;
      case 'first_token':
        return this.#firstTokenDueAt;
      case 'idle':
        return this.#idleSince + this.#idleMs;
      case 'request':
        return this.#requestDueAt;
    }
  }

  #nearest(): TimeOver {
    let nearest: TimeOver = 'request';
    if (this.#dueAt('idle') < this.#dueAt(nearest)) nearest = 'idle';
    if (this.#firstTokenDueAt < this.#dueAt(nearest)) nearest = 'first_token';
    return this.#firstByteDueAt <= this.#dueAt(nearest) ? 'first_byte' : nearest;
  }

  #arm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#stopped) return;
    const which = this.#nearest();
    const due = this.#dueAt(which);
    if (due === Infinity) return;
    this.#timer = setTimeout(() => this.#fired(which), timerDelay(due - this.clock.now()));
  }

  #fired(which: TimeOver): void {
    const lateMs = this.clock.now() - this.#dueAt(which);
    if (lateMs < 0) {
      this.#arm();
    } else if (lateMs > LATE_MS) {
      // Trap: timers run before sockets are read. A process that was blocked looks at its sockets before it judges.
      this.#timer = setTimeout(() => this.#judge(which), LATE_MS);
    } else {
      setImmediate(() => this.#judge(which));
    }
  }

  #judge(which: TimeOver): void {
    if (this.#stopped) return;
    // What it waited for may have come meanwhile.
    if (this.#dueAt(which) > this.clock.now()) this.#arm();
    else this.owner.timeOver(which);
  }
}

function dueAt(from: number, limitMs: number): number {
  return limitMs > 0 ? from + limitMs : Infinity;
}
