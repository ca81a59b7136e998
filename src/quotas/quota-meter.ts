import type { QuotaConfig } from '../config/gateway-config.js';
import { calendarOf } from './window/calendar.js';
import { CalendarWindow } from './window/calendar-window.js';
import type { QuotaWindow, Use } from './window/quota-window.js';
import { SlidingWindow } from './window/sliding-window.js';

/** Others who count against the same quota. */
export interface MeterPeers {
  /** Used now; negative where it was taken back. */
  booked(meter: QuotaMeter, amount: number, nowMs: number): void;
  /** What this process has reserved, all requests together. */
  reserved(meter: QuotaMeter, tokens: number): void;
}

/**
 * Counts one quota of one provider, key, upstream, entry or consumer; lives as long as that. A request counts in the
 * window in which it is sent; tokens are reserved while it runs, across a turn too, and count in the window in which
 * their number is known. Takes every request as long as anything is left, so the last one may go beyond the limit.
 */
export class QuotaMeter {
  #window: QuotaWindow;
  /** Null where nobody else counts. */
  peers: MeterPeers | null = null;
  #reservedTokens = 0;
  #reservedElsewhere = 0;
  #version = 0;

  constructor(
    readonly quota: QuotaConfig,
    uses: readonly Use[],
    nowMs: number,
  ) {
    this.#window = windowOf(quota, uses, nowMs);
  }

  /** Begins again with what was used before this process. */
  restore(uses: readonly Use[], nowMs: number): void {
    this.#window = windowOf(this.quota, uses, nowMs);
  }

  /** Grows with each change of what is kept. */
  get version(): number {
    return this.#version;
  }

  /** What is neither used nor reserved; ≤ 0 = exhausted. */
  remaining(nowMs: number): number {
    return this.quota.limit - this.#window.used(nowMs) - this.#reserved;
  }

  /** 0 = open. Where only reservations close it, until the window turns: it may open sooner. */
  opensInMs(nowMs: number): number {
    return this.#window.opensInMs(this.quota.limit - this.#reserved, nowMs);
  }

  /** Time until nothing of what is used now counts any more. */
  turnsInMs(nowMs: number): number {
    return this.#window.turnsInMs(nowMs);
  }

  /** Before a request is sent that may use so many tokens. */
  reserve(tokens: number, nowMs: number): QuotaHold {
    this.#version++;
    if (this.quota.unit === 'requests') {
      const place = this.#window.book(1, nowMs);
      this.peers?.booked(this, 1, nowMs);
      return new RequestHold(this, place);
    }
    this.#reservedTokens += tokens;
    this.peers?.reserved(this, this.#reservedTokens);
    return new TokenHold(this, tokens);
  }

  /** What is used now, and what is reserved as if it were used: a process that is killed forgets nothing. */
  uses(nowMs: number): Use[] {
    const uses = this.#window.uses(nowMs);
    return this.#reservedTokens > 0 ? [...uses, [nowMs, this.#reservedTokens]] : uses;
  }

  /** @internal */
  unreserve(tokens: number, used: number, nowMs: number): void {
    this.#version++;
    this.#reservedTokens -= tokens;
    this.peers?.reserved(this, this.#reservedTokens);
    if (used <= 0) return;
    this.#window.book(used, nowMs);
    this.peers?.booked(this, used, nowMs);
  }

  /** @internal */
  takeBack(place: number, nowMs: number): void {
    this.#version++;
    this.#window.takeBack(1, place, nowMs);
    this.peers?.booked(this, -1, nowMs);
  }

  /** Others have used so much more. */
  adopt(amount: number, nowMs: number): void {
    this.#version++;
    this.#window.book(amount, nowMs);
  }

  /** What all others together have reserved. */
  reservedElsewhere(tokens: number): void {
    this.#reservedElsewhere = tokens;
  }

  /** What counts at this moment. */
  used(nowMs: number): number {
    return this.#window.used(nowMs);
  }

  get #reserved(): number {
    return this.#reservedTokens + this.#reservedElsewhere;
  }
}

function windowOf({ per, window }: QuotaConfig, uses: readonly Use[], nowMs: number): QuotaWindow {
  if (window === 'sliding') return new SlidingWindow(per.ms, uses, nowMs);
  return new CalendarWindow(calendarOf(per), uses, nowMs);
}

/** What one request holds of one meter; ends with the first of its two calls, the others do nothing. */
export interface QuotaHold {
  /** The request was sent, and used so many tokens. */
  settle(tokens: number, nowMs: number): void;
  /** The request never reached the provider. */
  giveBack(nowMs: number): void;
}

class TokenHold implements QuotaHold {
  #open = true;

  constructor(
    private readonly meter: QuotaMeter,
    private readonly reserved: number,
  ) {}

  settle(tokens: number, nowMs: number): void {
    if (this.#open) this.meter.unreserve(this.reserved, tokens, nowMs);
    this.#open = false;
  }

  giveBack(nowMs: number): void {
    this.settle(0, nowMs);
  }
}

/** The request counts from the moment it was reserved, and only ceases to where it was not sent. */
class RequestHold implements QuotaHold {
  #open = true;

  constructor(
    private readonly meter: QuotaMeter,
    private readonly place: number,
  ) {}

  settle(): void {
    this.#open = false;
  }

  giveBack(nowMs: number): void {
    if (this.#open) this.meter.takeBack(this.place, nowMs);
    this.#open = false;
  }
}
