import { SlotPool } from '../concurrency/slot-pool.js';

export interface BackoffOptions {
  /** No rest is longer. */
  readonly capMs: number;
  /** First rest after a failure; each further one of a streak doubles it. */
  readonly baseMs?: number;
}

/** A failure as others must hear of it: durations only. */
export interface BookedFailure {
  readonly baseMs: number;
  readonly capMs: number;
  readonly askedMs: number;
  /** Since the attempt began. */
  readonly ageMs: number;
  readonly trial: boolean;
}

/** Others who count the same streak. */
export interface BackoffPeers {
  failed(failure: BookedFailure): void;
  succeeded(): void;
}

/** What all of them together have come to. */
export interface AgreedRest {
  readonly streak: number;
  readonly number: number;
  readonly totalMs: number;
  readonly leftMs: number;
  readonly quietMs: number;
  readonly afterTrial: boolean;
}

const BASE_MS = 1000;
/** News of oneself, a little later. */
const SAME_MS = 50;

/**
 * The failure streak and the rest of one upstream, or of all upstreams that share a provider's counter, and the places
 * of the requests that may try it while it rests. Lives as long as what it describes; owns no timer: resting is a
 * comparison with the clock, so nothing can overflow. Who may try it is for {@link Recovery} to say.
 * All times are monotonic milliseconds.
 */
export class Backoff {
  readonly capMs: number;
  readonly #baseMs: number;
  #streak = 0;
  #restBeganAt = 0;
  #restEndsAt = 0;
  #restNumber = 0;
  #afterTrial = false;
  /** The provider asked not to be bothered before. */
  #quietUntil = 0;
  /** Of trials; how many there may be is for each {@link Recovery} to say, and for replicas that share the counter. */
  readonly trialSlots = new SlotPool(Infinity);
  /** Null where nobody else counts this streak. */
  peers: BackoffPeers | null = null;
  readonly #restListeners: (() => void)[] = [];
  readonly #wakeListeners: (() => void)[] = [];

  constructor(options: BackoffOptions) {
    this.capMs = options.capMs;
    this.#baseMs = options.baseMs ?? BASE_MS;
  }

  get streak(): number {
    return this.#streak;
  }

  /** Trials under way, also those that began in an earlier rest. */
  get trials(): number {
    return this.trialSlots.active;
  }

  /** Counts the rests: another number is another rest. */
  get restNumber(): number {
    return this.#restNumber;
  }

  /** Whether it was a failed trial that began the present rest. */
  get afterTrial(): boolean {
    return this.#afterTrial;
  }

  /** Called each time a rest begins or is prolonged. */
  onRest(listener: () => void): void {
    this.#restListeners.push(listener);
  }

  /** Called each time requests may come earlier than the rest said: after a success, or as a trial. */
  onWake(listener: () => void): void {
    this.#wakeListeners.push(listener);
  }

  /** Tells those who asked for it: see {@link onWake}. */
  wake(): void {
    for (const listener of this.#wakeListeners) listener();
  }

  /** Time until traffic may come again; 0 = not resting. */
  restingMs(now: number): number {
    return this.#streak === 0 ? 0 : Math.max(0, this.#restEndsAt - now);
  }

  /** Time until the second half of the rest; 0 = it has begun, or nothing rests. */
  firstHalfMs(now: number): number {
    if (this.#streak === 0) return 0;
    return Math.max(0, this.#restBeganAt + (this.#restEndsAt - this.#restBeganAt) / 2 - now);
  }

  /** Time until the provider's own `Retry-After` has passed; 0 = it has, or there was none. */
  quietMs(now: number): number {
    return Math.max(0, this.#quietUntil - now);
  }

  /** Whether a background probe may be sent: never before the provider's own `Retry-After` has passed. */
  probeAllowed(now: number): boolean {
    return now >= this.#quietUntil;
  }

  /** Takes a place for a trial where fewer than `places` are under way. */
  takeTrial(places: number): boolean {
    return this.trials < places && this.trialSlots.claim();
  }

  giveBackTrial(): void {
    if (this.trials === 0) throw new Error('the place of a trial was given back that nobody held');
    this.trialSlots.release();
    this.wake();
  }

  /**
   * Books a failure of an attempt that began at `attemptBeganAt` and returns the rest in ms from now. The rest after a
   * failed `trial` is never shorter than the one it was made in.
   * Trap: many requests in flight fail together; one that began before the present rest does not raise the streak again.
   */
  failed(now: number, attemptBeganAt: number, retryAfterMs = 0, trial = false): number {
    const asked = Math.min(this.capMs, retryAfterMs);
    const sameEvent = this.restingMs(now) > 0 && attemptBeganAt < this.#restBeganAt;
    if (sameEvent) {
      this.#restEndsAt = Math.max(this.#restEndsAt, now + asked);
    } else {
      const previousMs = trial && this.#streak > 0 ? this.#restEndsAt - this.#restBeganAt : 0;
      this.#streak++;
      this.#restNumber++;
      this.#afterTrial = trial;
      this.#restBeganAt = now;
      // A rest that was prolonged by Retry-After can be longer than the cap.
      this.#restEndsAt = now + Math.max(this.#ladderMs(), asked, Math.min(this.capMs, previousMs));
    }
    if (retryAfterMs > 0) this.#quietUntil = Math.max(this.#quietUntil, now + retryAfterMs);
    this.peers?.failed({
      baseMs: this.#baseMs,
      capMs: this.capMs,
      askedMs: retryAfterMs,
      ageMs: now - attemptBeganAt,
      trial,
    });
    for (const listener of this.#restListeners) listener();
    return this.restingMs(now);
  }

  /** What all who count this streak have come to; what this one knew is replaced. */
  adopt(agreed: AgreedRest, now: number): void {
    this.#restNumber = agreed.number;
    if (agreed.streak === 0) {
      this.#healthy();
      return;
    }
    const endsAt = now + agreed.leftMs;
    const isNews = this.#streak !== agreed.streak || Math.abs(this.#restEndsAt - endsAt) > SAME_MS;
    this.#streak = agreed.streak;
    this.#afterTrial = agreed.afterTrial;
    this.#restEndsAt = endsAt;
    this.#restBeganAt = endsAt - agreed.totalMs;
    this.#quietUntil = now + agreed.quietMs;
    if (isNews) for (const listener of this.#restListeners) listener();
  }

  /** A success, of a request or a probe: healthy at once. */
  succeeded(): void {
    // Most successes follow one another: then there is nothing to tell.
    if (this.#streak > 0) this.peers?.succeeded();
    this.#healthy();
  }

  #healthy(): void {
    const rested = this.#streak > 0;
    this.#streak = 0;
    this.#restEndsAt = 0;
    this.#quietUntil = 0;
    if (rested) this.wake();
  }

  #ladderMs(): number {
    return Math.min(this.capMs, this.#baseMs * 2 ** (this.#streak - 1));
  }
}
