import type { KeyConfig } from '../../config/gateway-config.js';
import type { WindowGate } from '../../contracts/gate.js';

/** Others who use the same key. `upstream` null = all upstreams. */
export interface KeyPeers {
  rests(key: PoolKey, upstream: string | null, ms: number): void;
  works(key: PoolKey, upstream: string): void;
}

/**
 * One key of a provider and its rests: for all upstreams of the provider, or for one of them. Lives as long as the
 * provider's pool; shows its id, never itself. Rests are monotonic times, expiry is the wall clock's.
 */
export class PoolKey {
  /** Null where nobody else uses it. */
  peers: KeyPeers | null = null;
  #restEndsAt = 0;
  readonly #restEndsAtOf = new Map<string, number>();

  /** `gate`: of its quotas, null without. */
  constructor(
    readonly config: KeyConfig,
    readonly gate: WindowGate | null = null,
  ) {}

  get id(): string {
    return this.config.id;
  }

  /** It will never be used again, unless the file changes. */
  dead(wallClockMs: () => number): boolean {
    const { disabled, expiresAtMs } = this.config;
    return disabled || (expiresAtMs !== null && expiresAtMs <= wallClockMs());
  }

  /** Time until it may be used at this upstream again: its rest is over, and its quotas are not used up. 0 = now. */
  closedMs(upstream: string, now: number): number {
    return Math.max(this.restingMs(upstream, now), this.gate?.closedMs() ?? 0);
  }

  /** Of its rests alone. */
  restingMs(upstream: string, now: number): number {
    const endsAt = Math.max(this.#restEndsAt, this.#restEndsAtOf.get(upstream) ?? 0);
    return Math.max(0, endsAt - now);
  }

  /** Of the rest for all upstreams, without those for one. */
  restingEverywhereMs(now: number): number {
    return Math.max(0, this.#restEndsAt - now);
  }

  /** Of the rest for this upstream alone. */
  restingAtMs(upstream: string, now: number): number {
    return Math.max(0, (this.#restEndsAtOf.get(upstream) ?? 0) - now);
  }

  /** A rest only ever grows; a later failure of requests that began before does not shorten it. */
  restEverywhere(now: number, ms: number): void {
    this.#restEndsAt = Math.max(this.#restEndsAt, now + ms);
    this.peers?.rests(this, null, ms);
  }

  restAt(upstream: string, now: number, ms: number): void {
    this.#restEndsAtOf.set(upstream, Math.max(this.#restEndsAtOf.get(upstream) ?? 0, now + ms));
    this.peers?.rests(this, upstream, ms);
  }

  /** What the others have come to; 0 = it does not rest. */
  adopt(upstream: string | null, now: number, leftMs: number): void {
    if (upstream === null) this.#restEndsAt = now + leftMs;
    else if (leftMs === 0) this.#restEndsAtOf.delete(upstream);
    else this.#restEndsAtOf.set(upstream, now + leftMs);
  }

  /** The upstream took it: it is not too fast there, whatever began before. What a key may not do at all is not ended. */
  worked(upstream: string): void {
    if (this.#restEndsAtOf.size > 0 && this.#restEndsAtOf.delete(upstream)) this.peers?.works(this, upstream);
  }
}
