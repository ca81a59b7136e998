/** First rest after a failure; each further one of a streak doubles it. */
const BASE_MS = 1000;

export interface BackoffOptions {
  /** No rest is longer. */
  readonly capMs: number;
  readonly baseMs?: number;
}

/**
 * The failure streak and the rest of one upstream, or of all upstreams that share a provider's counter.
 * Lives as long as what it describes; owns no timer: resting is a comparison with the clock, so nothing can overflow.
 * All times are monotonic milliseconds.
 */
export class Backoff {
  readonly capMs: number;
  readonly #baseMs: number;
  #streak = 0;
  #restBeganAt = 0;
  #restEndsAt = 0;
  /** The provider asked not to be bothered before. */
  #quietUntil = 0;
  readonly #restListeners: (() => void)[] = [];

  constructor(options: BackoffOptions) {
    this.capMs = options.capMs;
    this.#baseMs = options.baseMs ?? BASE_MS;
  }

  get streak(): number {
    return this.#streak;
  }

  /** Called each time a rest begins or is prolonged. */
  onRest(listener: () => void): void {
    this.#restListeners.push(listener);
  }

  /** Time until traffic may come again; 0 = not resting. */
  restingMs(now: number): number {
    return this.#streak === 0 ? 0 : Math.max(0, this.#restEndsAt - now);
  }

  /** Whether a background probe may be sent: never before the provider's own `Retry-After` has passed. */
  probeAllowed(now: number): boolean {
    return now >= this.#quietUntil;
  }

  /**
   * Books a failure of an attempt that began at `attemptBeganAt` and returns the rest in ms from now.
   * Trap: many requests in flight fail together; one that began before the present rest does not raise the streak again.
   */
  failed(now: number, attemptBeganAt: number, retryAfterMs = 0): number {
    const asked = Math.min(this.capMs, retryAfterMs);
    const sameEvent = this.restingMs(now) > 0 && attemptBeganAt < this.#restBeganAt;
    if (sameEvent) {
      this.#restEndsAt = Math.max(this.#restEndsAt, now + asked);
    } else {
      this.#streak++;
      this.#restBeganAt = now;
      this.#restEndsAt = now + Math.max(this.#ladderMs(), asked);
    }
    if (retryAfterMs > 0) this.#quietUntil = Math.max(this.#quietUntil, now + retryAfterMs);
    for (const listener of this.#restListeners) listener();
    return this.restingMs(now);
  }

  /** A success, of a request or a probe: healthy at once. */
  succeeded(): void {
    this.#streak = 0;
    this.#restEndsAt = 0;
    this.#quietUntil = 0;
  }

  #ladderMs(): number {
    return Math.min(this.capMs, this.#baseMs * 2 ** (this.#streak - 1));
  }
}
